"""The vendor's libraries as contestants: each function returns a callable for `ct.bench`.

Where a library is missing or cannot run it returns a `Missing` instead, which is false and knows why; `ct.bench` says so in
the row's place. While an example is recorded that is a ToolMissing: a page must not lose its rival.

CUB is compiled from the CUDA toolkit's own headers; CuPy (for cuBLAS and elementwise kernels) and PyTorch use the primary
context that PyCUDA shares. All work on the same arrays, without a copy. While a sanitizer or profiler runs the process,
every function returns None: it is our kernels that are watched, and the imports take seconds. With `profiled=True` a
function does its work under the profiler too, whose counters of the rival are wanted.
"""

import ctypes
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from cudatut import tool
from cudatut.errors import CudatutError, KernelCompileError, ToolMissing
from cudatut.gpu import memory
from cudatut.gpu.device import activate, cupy_package, device
from cudatut.gpu.nvcc import find_nvcc, nvcc_version
from cudatut.gpu.operands import operands
from cudatut.results import show


class Vendor:
    """A call into another library, for `ct.bench`, whose ratios are to the fastest row with `vendor`.

    vendor: False for what is no library of the GPU's vendor, such as a kernel that CuPy generates; its row is a rival only.
    out: the array that the result goes to, where the library allocates it; there is no such attribute elsewhere.
    """

    def __init__(self, call: Callable[[], Any], vendor: bool = True, out: Any = None):
        self._call, self.vendor = call, vendor
        if out is not None:
            self.out = out

    def __call__(self) -> Any:
        return self._call()


@dataclass(frozen=True)
class Missing:
    """What stands for a rival that cannot run here: false, with the reason in one line."""

    reason: str

    def __bool__(self) -> bool:
        return False


def _rival(prepare: Callable[..., Any]) -> Callable[..., Any]:
    """`prepare`, with None under a tool, and a Missing in the place of ToolMissing unless an example is recorded."""

    @wraps(prepare)
    def found(*arguments: Any, profiled: bool = False, **options: Any) -> Any:
        if tool.running() and not (profiled and tool.running() == "ncu"):
            return None
        try:
            return prepare(*arguments, **options)
        except ToolMissing as error:
            if tool.recording():
                raise
            return Missing(str(error))

    return found


def installed() -> bool:
    """Whether CuPy is there to be imported: a profiler's run of a file launches a `profiled` contestant only then."""
    return importlib.util.find_spec("cupy") is not None


def cupy() -> ModuleType | None:
    """CuPy, or None: under a tool, and after a note where it cannot run. Raises ToolMissing while an example is recorded."""
    found = _rival(_cupy)()
    if isinstance(found, Missing):
        show(found.reason)
    return found or None


@contextmanager
def _needs(what: str, fix: str = "") -> Iterator[None]:
    """Whatever goes wrong inside is a ToolMissing that quotes the first line of the error, and says how to mend it."""
    try:
        yield
    except Exception as error:
        line = next((line.strip() for line in str(error).splitlines() if line.strip()), repr(error))
        raise ToolMissing(f"{what} cannot run here ({line}){fix}") from error


@cache
def _cupy() -> ModuleType:
    """CuPy. Raises ToolMissing where it is not installed or cannot run."""
    activate()
    package = cupy_package()
    fix = f"`pip install {package}`, and no other" if package else "no CuPy fits this driver"
    with _needs("CuPy", f": {fix}"):
        import cupy

        if not tool.running():  # which would watch the probe as well
            # A CuPy of another CUDA than the driver's imports, and fails at its first call; so does one without NVRTC.
            cupy.zeros(1, "float32").sum().get()
    return cupy


@cache
def _cublas() -> ModuleType:
    """CuPy whose cuBLAS starts. Raises ToolMissing."""
    cp = _cupy()
    with _needs("cuBLAS"):  # its library is a package of its own, and may be missing
        cp.cuda.get_cublas_handle()
    return cp


@cache
def _torch() -> ModuleType:
    """PyTorch. Raises ToolMissing where it is not installed or cannot run."""
    activate()
    with _needs("PyTorch"):  # nor one built without CUDA, or for another than the driver's
        import torch

        torch.zeros(1, device="cuda").sum().item()
    return torch


@_rival
def copy(target: Any, source: Any) -> Vendor | Missing | None:
    """Device-to-device copy of one array into another of the same size, by the driver through CuPy.

    Both C-contiguous, sharing no memory. Raises TypeError, ValueError.
    """
    take = operands("copy")
    of_source = take.read("source", source, None, most=1 << 62)
    of_target = take.write("target", target, None, most=1 << 62)
    sizes = [one.count * one.width * one.size for one in (of_source, of_target)]
    if sizes[0] != sizes[1]:
        raise ValueError(f"copy: {sizes[0]} bytes do not fit into a target of {sizes[1]}")
    cp = _cupy()
    a, b, stream = cp.asarray(target), cp.asarray(source), cp.cuda.get_current_stream
    return Vendor(lambda: a.data.copy_from_device_async(b.data, b.nbytes, stream()))


@_rival
def add(x: Any, y: Any, out: Any) -> Vendor | Missing | None:
    """out = x + y, elementwise, by CuPy's generated kernel: a rival, but not the vendor's.

    x, y, out: of one shape and type; C-contiguous; out may be x or y. Raises TypeError, ValueError.
    """
    take = operands("add")
    first = take.read("x", x, None, most=1 << 62)
    take.read("y", y, first.dtype, first.shape, most=1 << 62)
    take.write("out", out, first.dtype, first.shape, most=1 << 62, over=("x", "y"))
    cp = _cupy()
    a, b, c = cp.asarray(x), cp.asarray(y), cp.asarray(out)
    return Vendor(lambda: cp.add(a, b, out=c), vendor=False)


@_rival
def torch_sum(x: Any) -> Vendor | Missing | None:
    """Sum of all elements by PyTorch, in x's dtype."""
    pt = _torch()
    tensor = pt.as_tensor(x, device="cuda")
    return Vendor(lambda: pt.sum(tensor, dtype=tensor.dtype))


@_rival
def sum(x: Any) -> Vendor | Missing | None:
    """Sum of all elements (float32 or int32) by CUB's DeviceReduce; `.out` is the array of one element it goes to.

    x: C-contiguous. Raises TypeError, ValueError.
    """
    operands("sum").read("x", x, ("float32", "int32"), most=1 << 62)
    return _cub_call(f"cub_sum_{x.dtype}", x, (1, x.dtype))


@_rival
def histogram(x: Any) -> Vendor | Missing | None:
    """Counts of the 256 values of uint8 elements by CUB's DeviceHistogram; `.out` is the uint32 array of counts.

    x: C-contiguous. Raises TypeError, ValueError.
    """
    operands("histogram").read("x", x, "uint8", most=1 << 62)
    return _cub_call("cub_histogram_uint8", x, (256, "uint32"))


def _cub_call(name: str, source: Any, result: tuple[int, Any]) -> Vendor:
    """A call of a function of vendor_cub.cu; scratch memory, and a result of (count, dtype), are allocated once."""
    with _needs("CUB"):
        library = compile_cub()
    function = getattr(library, name)
    out, nbytes = memory.empty(*result), ctypes.c_size_t(0)
    pointers = [ctypes.c_void_p(int(array.gpudata)) for array in (source, out)]

    def call(scratch: int | None) -> None:
        size, count = ctypes.byref(nbytes), ctypes.c_longlong(source.size)
        if status := function(ctypes.c_void_p(scratch), size, *pointers, count):
            raise CudatutError(f"{name} failed with CUDA error {status}")

    call(None)  # CUB's way of saying how much scratch memory it needs
    scratch = memory.empty(max(nbytes.value, 1), "uint8")
    return Vendor(lambda: call(int(scratch.gpudata)), out=out)


@cache
def compile_cub() -> ctypes.CDLL:
    """vendor_cub.cu as a library, compiled by nvcc for this GPU once and then kept in the user's cache.

    Raises ToolMissing without nvcc, KernelCompileError where this toolkit's CUB does not compile.
    """
    from platformdirs import user_cache_dir

    source, nvcc, arch = Path(__file__).with_name("vendor_cub.cu"), find_nvcc(), device().arch
    made_of = f"{source.read_text()} {nvcc_version(nvcc)} {arch}"
    key = hashlib.sha256(made_of.encode()).hexdigest()[:16]
    suffix, flags = (".dll", []) if sys.platform == "win32" else (".so", ["-Xcompiler", "-fPIC"])
    library = Path(user_cache_dir("cudatut", "cudatut")) / f"cub-{key}{suffix}"
    if not library.is_file():
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            made = Path(folder) / library.name
            command = [nvcc, "-O3", "-std=c++17", f"-arch={arch}", "--shared", *flags, "-o", made]
            done = subprocess.run([*map(str, command), source], capture_output=True, text=True)
            if done.returncode:
                raise KernelCompileError(f"nvcc refused {source.name}: {done.stderr.strip()}")
            os.replace(made, library)
    return ctypes.CDLL(str(library))


def cub_version() -> str | None:
    """The version of CUB whose sums and histograms were measured in this process, as its header says; None without any."""
    if not compile_cub.cache_info().currsize:
        return None
    header = find_nvcc().resolve().parents[1] / "include/cccl/cub/version.cuh"
    found = re.search(r"define CUB_VERSION (\d+)", header.read_text()) if header.is_file() else None
    number = int(found[1]) if found else 0
    # CUB_VERSION is 100000 major + 100 minor + patch.
    return f"{number // 100000}.{number // 100 % 1000}.{number % 100}" if number else None


def compile_ahead() -> None:
    """Let nvcc and CuPy compile what the book's contests ask for, into the caches of both."""
    compile_cub()
    if cp := cupy():
        # CuPy makes another kernel for reductions of less than 2048 elements.
        numbers = cp.zeros(1 << 12, "uint8")
        cp.bincount(numbers, minlength=256)
        cp.add(*(numbers.astype("float32"),) * 2)


@_rival
def matmul(a: Any, b: Any, out: Any) -> Vendor | Missing | None:
    """out = a @ b by cuBLAS, through CuPy; a (m, k), b (k, n), out (m, n), all row-major and float32 (or float16).

    In fp32 throughout: CuPy asks cuBLAS for CUBLAS_COMPUTE_32F, which rules TF32 out, unless CUPY_TF32=1 in the
    environment or other code chose otherwise, and both are overruled here. For the whole process, as CuPy has it.
    With float16 it uses the tensor cores, and adds in fp32. C-contiguous; out shares no memory with the others. Raises
    TypeError, ValueError.
    """
    take = operands("matmul")
    left = take.read("a", a, ("float32", "float16"), (None, None))
    m, k = left.shape
    n = take.read("b", b, left.dtype, (k, None)).shape[1]
    take.write("out", out, left.dtype, (m, n))
    cp = _cublas()
    linalg = cp._core._routines_linalg
    linalg.set_compute_type(out.dtype, linalg.COMPUTE_TYPE_DEFAULT)
    left, right, target = cp.asarray(a), cp.asarray(b), cp.asarray(out)
    return Vendor(lambda: cp.dot(left, right, out=target))


@_rival
def gemm(
    a: Any,
    b: Any,
    c: Any,
    alpha: float = 1.0,
    beta: float = 0.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Vendor | Missing | None:
    """c = alpha op(a) op(b) + beta c by cublasSgemm, called through CuPy; all row-major and float32, without TF32.

    op(a) is (m, k): a itself, or with transpose_a the transpose of an a of (k, m); op(b) is (k, n) likewise; c is (m, n).
    A call costs the host no more than cuBLAS's own launch: everything else is prepared here. C-contiguous; c shares no
    memory with the others. Raises TypeError for another dtype, ValueError for what else does not fit.
    """
    take = operands("gemm")
    shape = take.read("a", a, "float32", (None, None)).shape
    m, k = shape[::-1] if transpose_a else shape
    shape = take.read("b", b, "float32", (None, k) if transpose_b else (k, None)).shape
    n = shape[0 if transpose_b else 1]
    take.write("c", c, "float32", (m, n))
    import numpy as np

    cp = _cublas()
    cublas, handle = cp.cuda.cublas, cp.cuda.get_cublas_handle()
    # CUBLAS_DEFAULT_MATH rules TF32 out, and no more: "pedantic" would forbid some fp32 algorithms too.
    cublas.setMathMode(handle, 0)
    # CUBLAS_POINTER_MODE_HOST: alpha and beta lie in the host's memory.
    cublas.setPointerMode(handle, 0)
    scalars = np.array([alpha, beta], "float32")
    left, right, target = (cp.asarray(array) for array in (a, b, c))
    # cuBLAS counts down columns: to it our row-major arrays are their transposes, and C^T = op(B)^T op(A)^T.
    arguments = (
        handle, int(transpose_b), int(transpose_a), n, m, k,
        scalars.ctypes.data, right.data.ptr, max(right.shape[1], 1),
        left.data.ptr, max(left.shape[1], 1),
        scalars.ctypes.data + scalars.itemsize, target.data.ptr, max(n, 1),
    )  # fmt: skip
    vendor: Any = Vendor(lambda: cublas.sgemm(*arguments))
    vendor.kept = scalars, left, right, target  # cuBLAS sees only their addresses
    return vendor
