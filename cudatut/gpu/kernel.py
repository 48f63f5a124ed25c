"""Compile a kernel with nvcc through PyCUDA, launch it with checked arguments, and report what it needs."""

import ctypes
import hashlib
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from cudatut import catalog, paths, tool, words
from cudatut.errors import KernelCompileError, LaunchError
from cudatut.fingerprint import code, ran
from cudatut.gpu import cubins, headers, instances, memory
from cudatut.gpu.device import device, installed_driver, pycuda_driver
from cudatut.gpu.nvcc import find_nvcc
from cudatut.gpu.signature import Parameter, kernels, parameters
from cudatut.results import Resources

_AXES = ("block.x", "block.y", "block.z", "grid.x", "grid.y", "grid.z")
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES in cuda.h
_say = words.section("kernel")


def cdiv(a: int, b: int) -> int:
    """a / b rounded up: the number of blocks of b that cover a elements. Raises ZeroDivisionError for b = 0."""
    return -(-a // b)


class Kernel:
    """A `__global__` function, compiled for this GPU.

    source: the path of a `.cu` file, relative to the examples, or CUDA C++ itself. Without any `extern "C"` in it the
    whole source is wrapped in one, as PyCUDA's SourceModule does, so that the function keeps its plain name.
    name: the kernel's name in that source; of a template with its arguments, 'gemm<128, float>', which makes that one
    instance (the source must not instantiate the same one explicitly, and is never wrapped). Kernels of equal code share
    its `__device__` variables.
    defines: macros, as nvcc's -D. options: further flags for nvcc. arch: such as 'sm_90a'; default: this GPU's own.
    load: False to compile only, which any thread can do; to load it needs the thread with the context.

    Raises KernelCompileError with the offending source lines, FileNotFoundError, NoGpuError, ToolMissing (no nvcc).
    """

    def __init__(
        self,
        source: str,
        name: str,
        defines: dict[str, Any] | None = None,
        options: Sequence[str] = (),
        arch: str | None = None,
        load: bool = True,
    ):
        self.name = instances.normal(name)
        if str(source).endswith(".cu"):
            self._path: Path | None = paths.resolve_source(source)
            self.label, self._source = str(source), self._path.read_text(encoding="utf-8")
        else:
            self.label, self._source, self._path = "inline.cu", source, None
        self.parameters = parameters(self._source, self.name, defines)
        macros = [f"-D{key}={value}" for key, value in (defines or {}).items()]
        self._cubin = self._compile(("-lineinfo", *options, *macros), arch)
        self._symbol = instances.find_symbol(self._cubin, self._source, self.name, self.label)
        if ran.following():
            self._note(macros, [str(option) for option in options], arch)
        self._function: Any = self._load() if load else None

    @property
    def source(self) -> str:
        """The text of its file, or the CUDA C++ that it was made of."""
        if self._path and ran.following():
            ran.text(self._path)  # whoever asks may look at comments, too
        return self._source

    @property
    def symbol(self) -> str:
        """The function's name in the compiled code: `name`, or for a template's instance what the compiler made of it."""
        return self._symbol

    def machine_code(self) -> bytes:
        """The function's instructions, as the GPU gets them: two kernels of equal code differ in name only."""
        return instances.code_of(self._cubin, self.symbol)

    @property
    def cubin(self) -> bytes:
        """The compiled code, an ELF file: what cuobjdump and nvdisasm read."""
        return self._cubin

    def _note(self, macros: list[str], options: list[str], arch: str | None) -> None:
        """Tell the recording of this kernel: of what it was made, how, and its code."""
        root = str(paths.examples_dir())
        made_of: dict[str, Any]
        if self._path:
            files, made_of = catalog.with_includes(self._path), {"file": self.label}
        else:
            text = hashlib.sha256(self._source.encode()).hexdigest()
            files = sorted(_included(self._source))
            included = [catalog.relative(file, paths.examples_dir()) for file in files]
            made_of = {"text": text, "includes": included}
        ran.kernel(
            files,
            **made_of,
            name=self.name,
            defines=[macro.removeprefix("-D") for macro in macros],
            options=[option.replace(root, "examples") for option in options],
            arch=arch or device().arch,
            code=code.digest(self._cubin, self.symbol),
        )

    def _compile(self, flags: tuple[str, ...], arch: str | None) -> bytes:
        whole = instances.assemble(self._source, self.name)
        wrap = instances.wrapped(self._source, self.name)
        folder = self._path.parent if self._path else None
        try:
            return _compile(whole, wrap, self.label, flags, arch, folder)
        except KernelCompileError as error:
            # Where the instance is asked for.
            last = _say("line", number=len(whole.splitlines()))
            if whole == self._source or last not in str(error):
                raise
            names = kernels(self._source)
            said = _say("defines", error=error, label=self.label, names=names)
            raise KernelCompileError(said) from None

    def _load(self):
        self._module = _loaded(self._cubin)  # kept: unloading it would take the function with it
        return self._module.get_function(self.symbol)

    def __call__(
        self, *args: Any, grid: Any, block: Any, shared: int = 0, stream: Any = None
    ) -> None:
        """Launch: returns at once, the GPU works on.

        args: GPUArrays (or CuPy/PyTorch arrays) for pointers; numbers, converted to the C types of the parameters; for a
        struct by value its bytes: a `bytes`, a ctypes.Structure, a NumPy array or structured scalar of the struct's size.
        A struct needs a driver of CUDA 12.4 or newer, which says where the kernel looks for it.
        grid, block: an int or up to three. shared: bytes of dynamic shared memory. stream: a PyCUDA stream.
        Raises TypeError or ValueError for arguments, LaunchError for a configuration that this GPU cannot run.
        """
        block, grid = _dim3(block, "block"), _dim3(grid, "grid")
        self._check_launch(grid, block, shared)
        memory.launched()
        self._function(*self._convert(args), grid=grid, block=block, shared=shared, stream=stream)

    def _check_launch(self, grid: tuple, block: tuple, shared: int) -> None:
        gpu, name, function = device(), self.name, self._function
        for axis, extent, limit in zip(_AXES, block + grid, gpu.max_block + gpu.max_grid):
            if not 1 <= extent <= limit:
                raise LaunchError(_say("limit", name=name, axis=axis, extent=extent, limit=limit))
        attribute = pycuda_driver().function_attribute
        threads, most = math.prod(block), function.get_attribute(attribute.MAX_THREADS_PER_BLOCK)
        if threads > most:
            holds, registers = gpu.max_threads_per_block, function.num_regs
            own = {"name": name, "block": block, "threads": threads, "most": most}
            raise LaunchError(_say("threads", holds=holds, registers=registers, **own))
        static = function.shared_size_bytes
        if static + shared > gpu.shared_per_block_optin:
            most = gpu.shared_per_block_optin
            raise LaunchError(_say("shared", name=name, static=static, dynamic=shared, most=most))
        if static + shared > gpu.shared_per_block:
            function.set_attribute(attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)

    def _convert(self, args: tuple) -> list:
        if self.parameters is None:
            return list(args)
        if len(args) != len(self.parameters):
            wanted = ", ".join(
                f"{p.ctype}{' *' if p.pointer else ' '}{p.name}" for p in self.parameters
            )
            takes = len(self.parameters)
            raise TypeError(
                _say("count", name=self.name, wanted=wanted, takes=takes, got=len(args))
            )
        values = [
            self._pointer(p, a) if p.pointer else self._number(p, a)
            for p, a in zip(self.parameters, args)
        ]
        if not any(isinstance(value, np.void) for value in values):
            return values  # a launch in a benchmark should cost little
        return placed(values, self._offsets)

    @cached_property
    def _offsets(self) -> list[int]:
        """Where the compiled kernel looks for each argument, in bytes. Raises LaunchError before CUDA 12.4.

        Not always where C would put them: parameters begin at an address that is a multiple of 16, and the compiler
        leaves room before a struct of larger alignment, even before the first.
        """
        ask = getattr(installed_driver(), "cuFuncGetParamInfo", None)
        function, found = _driver_function(self._cubin, self.symbol), []
        for index in range(len(self.parameters or ())):
            offset, size = ctypes.c_size_t(0), ctypes.c_size_t(0)
            which = function, ctypes.c_size_t(index)
            if ask is None or ask(*which, ctypes.byref(offset), ctypes.byref(size)):
                raise LaunchError(_say("struct", name=self.name))
            found.append(offset.value)
        return found

    def _pointer(self, parameter: Parameter, value: Any):
        def where() -> str:  # asked for by an error alone
            return _say("parameter", name=self.name, parameter=parameter.name)

        if isinstance(value, np.ndarray):
            raise TypeError(_say("host array", where=where()))
        interface = getattr(value, "__cuda_array_interface__", None)
        if interface is None:
            if isinstance(value, (int, float, complex, list, tuple)) or value is None:
                raise TypeError(_say("no pointer", where=where(), value=value))
            return value  # a DeviceAllocation or another of PyCUDA's own handles
        dtype = np.dtype(interface["typestr"])
        if parameter.dtype and dtype != np.dtype(parameter.dtype):
            types = {"ctype": parameter.ctype, "wanted": parameter.dtype, "dtype": dtype}
            raise TypeError(_say("other dtype", where=where(), **types))
        shape, strides = tuple(interface["shape"]), interface.get("strides")
        if strides and 0 not in shape and tuple(strides) != _c_strides(shape, dtype.itemsize):
            raise ValueError(
                _say("not contiguous", where=where(), shape=shape, strides=tuple(strides))
            )
        return np.uint64(interface["data"][0] or 0)

    def _number(self, parameter: Parameter, value: Any):
        def where() -> str:
            own = {"parameter": parameter.name, "ctype": parameter.ctype}
            return _say("typed parameter", name=self.name, **own)

        if parameter.dtype is None:
            return as_struct(value, where)
        dtype = np.dtype(parameter.dtype)
        if not isinstance(value, (int, float, np.generic)):
            raise TypeError(_say("no number", where=where(), kind=type(value).__name__))
        if dtype.kind in "iu":
            if value != int(value):
                raise TypeError(_say("no integer", where=where(), value=value))
            info = np.iinfo(dtype)
            if not info.min <= int(value) <= info.max:
                limits = {"least": info.min, "most": info.max}
                raise ValueError(_say("does not fit", where=where(), value=int(value), **limits))
            value = int(value)
        with np.errstate(over="ignore"):
            passed = dtype.type(value)
        if dtype.kind == "f" and np.isinf(passed) and not np.isinf(value):
            most = np.finfo(dtype).max
            raise ValueError(_say("too large", where=where(), value=value, dtype=dtype, most=most))
        return as_launched(passed)

    def resources(self, block: Any = 256, shared: int = 0) -> Resources:
        """Registers per thread, shared memory per block, local memory per thread (all as the driver says), occupancy.

        block: threads of a block (int or tuple); shared: bytes of dynamic shared memory. Nothing is launched.
        """
        threads, gpu = math.prod(_dim3(block, "block")), device()
        driver, function = installed_driver(), _driver_function(self._cubin, self.symbol)
        if shared > 48 << 10:  # more has to be asked for, here as before a launch
            driver.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, shared)
        blocks, warps = ctypes.c_int(0), cdiv(threads, gpu.warp_size)
        if status := driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            ctypes.byref(blocks), function, threads, ctypes.c_size_t(shared)
        ):
            own = {"threads": threads, "shared": shared, "status": status}
            raise LaunchError(_say("no occupancy", name=self.name, **own))
        return Resources(
            kernel=self.name,
            registers=self._function.num_regs,
            shared_bytes=self._function.shared_size_bytes + shared,
            spill_bytes=self._function.local_size_bytes,
            occupancy=blocks.value * warps * gpu.warp_size / gpu.max_threads_per_sm,
            block=threads,
            blocks_per_sm=blocks.value,
        )


def compile_ahead(
    instances: Iterable[tuple[Any, ...]],
) -> dict[tuple[Any, ...], KernelCompileError]:
    """Compile kernels (source, name) on all cores: `ct.Kernel(source, name)` then costs no time in this process.

    An instance may go on with the further arguments of `Kernel`, in their order, all of them hashable.
    Under a sanitizer other than memcheck, and under the profiler, nothing happens: memcheck's run, or one without a tool,
    has compiled for all of them, and what they launch themselves they find.
    Returns the error of each that does not compile. Raises NoGpuError, ToolMissing, FileNotFoundError.
    """
    if tool.running() not in (None, "memcheck"):
        return {}
    device()  # once, before threads ask
    ahead, errors = partial(Kernel, load=False), {}
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        compiled = {one: pool.submit(ahead, *one) for one in dict.fromkeys(instances)}
    for one, run in compiled.items():
        if isinstance(error := run.exception(), KernelCompileError):
            errors[one] = error
        elif error:
            raise error
    return errors


def _included(source: str) -> set[Path]:
    """The files of the examples that CUDA C++ in a string includes, directly or not."""
    names = headers.quoted(source)
    found = [paths.examples_dir() / name for name in names]
    return {file for path in found if path.is_file() for file in catalog.with_includes(path)}


def _dim3(value: Any, what: str) -> tuple[int, int, int]:
    extents = (value,) if not isinstance(value, (tuple, list)) else tuple(value)
    if not 1 <= len(extents) <= 3 or any(extent != int(extent) for extent in extents):
        raise LaunchError(_say("no extents", what=what, value=value))
    return tuple(int(extent) for extent in extents) + (1,) * (3 - len(extents))  # type: ignore[return-value] # three of them


def _c_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def as_launched(value: Any):
    """A NumPy scalar of the same bytes as `value`, of a type that PyCUDA can put among a kernel's arguments."""
    if value.dtype.char == "?":
        return np.uint8(value)
    return value.view(np.uint16) if value.dtype.char == "e" else value


def as_struct(value: Any, where: Callable[[], str]):
    """The bytes of a struct as a np.void, which PyCUDA passes by value; numbers and handles are returned unchanged.

    value: anything with a buffer: bytes, a ctypes.Structure, an array or structured scalar. Raises ValueError if empty,
    which says `where`.
    """
    if isinstance(value, np.number):
        return value
    try:
        data = memoryview(value).tobytes()
    except TypeError:
        return value
    if not data:
        raise ValueError(_say("no bytes", where=where()))
    return np.void(data)


def placed(values: Sequence[Any], offsets: Sequence[int]) -> list:
    """`values` with gaps (np.void) between them, so that PyCUDA puts each at its offset: a struct goes right behind
    what precedes it, a number or pointer to the next multiple of its size. Raises ValueError where one lies too early.
    """
    arranged, end = [], 0
    for value, offset in zip(values, offsets, strict=True):
        if offset < end:
            raise ValueError(f"an argument of {end - offset} bytes too many precedes byte {offset}")
        size = value.itemsize if isinstance(value, np.generic) else 8  # of a pointer
        if offset > end:
            arranged.append(np.void(bytes(offset - end)))
        arranged.append(value)
        end = offset + size
    return arranged


@lru_cache(maxsize=256)
def _loaded(cubin: bytes) -> Any:
    """The module of this code, loaded once: a sanitizer works on each that is loaded, for seconds if it is long."""
    return pycuda_driver().module_from_buffer(cubin)


def _compile(
    source: str,
    wrap: bool,
    label: str,
    flags: tuple[str, ...],
    arch: str | None,
    folder: Path | None,
) -> bytes:
    """The cubin, kept from before if it was compiled. `#line` makes every tool name the file we know."""
    cuda = pycuda_driver()
    folders = [path for path in (folder, paths.examples_dir()) if path]
    try:
        return cubins.compiled(
            headers.with_digest(f'#line 1 "{label}"\n{source}', folders, flags),
            nvcc=find_nvcc(),
            options=list(flags),
            no_extern_c=not wrap,
            arch=arch or device().arch,
            include_dirs=[str(path) for path in folders],
        )
    except cuda.CompileError as error:
        said = error.stderr or str(error)
        if isinstance(said, bytes):  # as PyCUDA leaves it when #include fails
            said = said.decode("utf-8", "replace")
        raise KernelCompileError(explain_compile_error(said, source, label)) from None


def explain_compile_error(stderr: str, source: str, label: str) -> str:
    """nvcc's errors, each with the source line that it is about and the line before it."""
    lines, report = source.splitlines(), [_say("cannot compile", label=label)]
    errors = re.findall(r"^(\S+)\((\d+)\): (?:catastrophic )?(error.*)$", stderr, flags=re.M)
    for file, number, message in errors:
        report.append(_say("error", file=file, line=_say("line", number=number), message=message))
        if file == label:
            start, end = max(int(number) - 2, 0), int(number)
            report += [f"    {i:4} | {line}" for i, line in enumerate(lines[start:end], start + 1)]
    if not errors:
        report += [f"  {line}" for line in stderr.strip().splitlines()]
    return "\n".join(report)


@cache
def _driver_function(cubin: bytes, name: str) -> ctypes.c_void_p:
    """The kernel loaded once more through the driver API: PyCUDA gives no handle, and only the driver knows occupancy."""
    driver, module, function = installed_driver(), ctypes.c_void_p(), ctypes.c_void_p()
    status = driver.cuModuleLoadData(ctypes.byref(module), cubin)
    status = status or driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
    if status:
        raise LaunchError(_say("cannot load", name=name, status=status))
    return function
