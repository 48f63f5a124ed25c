"""The vendor's libraries as contestants: each function returns a callable for `ct.bench`, or None with a note.

CuPy (CUB, cuBLAS) and PyTorch use the primary context that PyCUDA shares, so they work on the same arrays without a copy.
"""

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from . import tool
from .errors import ToolMissing
from .gpu import activate
from .results import show


class Vendor:
    """A call into a vendor's library; `vendor = True` is how `ct.bench` knows it."""

    vendor = True

    def __init__(self, call: Callable[[], Any]):
        self._call = call

    def __call__(self) -> Any:
        return self._call()


@cache
def cupy() -> ModuleType | None:
    """CuPy, or None after a note (while an example is recorded: ToolMissing, for a page must not lose its rival).

    None, too, while a sanitizer or profiler runs the process: it watches our kernels, and the import takes seconds.
    """
    activate()
    if tool.running():
        return None
    try:
        import cupy
    except ImportError as error:
        message = f"CuPy is not installed ({error}); `pip install cupy-cuda13x` adds the vendor's row to the benchmarks"
        if tool.recording():
            raise ToolMissing(message) from error
        show(message)
        return None
    return cupy


def copy(target: Any, source: Any) -> Vendor | None:
    """Device-to-device copy of one array into another of the same size, by the driver through CuPy."""
    if (cp := cupy()) is None:
        return None
    a, b = cp.asarray(target), cp.asarray(source)
    return Vendor(
        lambda: a.data.copy_from_device_async(b.data, b.nbytes, cp.cuda.get_current_stream())
    )


def add(x: Any, y: Any, out: Any) -> Vendor | None:
    """out = x + y, elementwise, by CuPy's generated kernel."""
    if (cp := cupy()) is None:
        return None
    a, b, c = cp.asarray(x), cp.asarray(y), cp.asarray(out)
    return Vendor(lambda: cp.add(a, b, out=c))


def sum(x: Any) -> Vendor | None:
    """Sum of all elements by CUB's DeviceReduce, through CuPy, into an array of one element of x's dtype."""
    if (cp := cupy()) is None:
        return None
    cp._core.set_routine_accelerators(["cub"])
    cp._core.set_reduction_accelerators(["cub"])
    a = cp.asarray(x)
    total = cp.empty((), a.dtype)
    return Vendor(lambda: a.sum(dtype=a.dtype, out=total))


@cache
def torch() -> ModuleType | None:
    """PyTorch, or None, as for `cupy`."""
    activate()
    if tool.running():
        return None
    try:
        import torch
    except ImportError as error:
        message = f"PyTorch is not installed ({error}); with it the benchmarks get one more row"
        if tool.recording():
            raise ToolMissing(message) from error
        show(message)
        return None
    return torch


def torch_sum(x: Any) -> Vendor | None:
    """Sum of all elements by PyTorch, in x's dtype."""
    if (pt := torch()) is None:
        return None
    tensor = pt.as_tensor(x, device="cuda")
    return Vendor(lambda: pt.sum(tensor, dtype=tensor.dtype))


def matmul(a: Any, b: Any, out: Any) -> Vendor | None:
    """out = a @ b by cuBLAS, through CuPy; a (m, k), b (k, n), out (m, n), all row-major and float32 (or float16).

    In fp32 throughout: CuPy asks cuBLAS for CUBLAS_COMPUTE_32F, which rules TF32 out, unless CUPY_TF32=1 in the
    environment or other code chose otherwise, and both are overruled here. For the whole process, as CuPy has it.
    With float16 it uses the tensor cores, and adds in fp32.
    """
    if (cp := cupy()) is None:
        return None
    linalg = cp._core._routines_linalg
    linalg.set_compute_type(out.dtype, linalg.COMPUTE_TYPE_DEFAULT)
    left, right, target = cp.asarray(a), cp.asarray(b), cp.asarray(out)
    return Vendor(lambda: cp.dot(left, right, out=target))
