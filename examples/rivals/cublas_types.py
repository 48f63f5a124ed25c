"""cuBLAS's products of other types than fp32, as contestants of `ct.bench`.

    run = cublas_types.fp16(a, b, c)    # fp16 factors, C and sums in fp32
    run = cublas_types.bf16(a, b, c)    # bf16 factors, as uint16
    run = cublas_types.tf32(a, b, c)    # fp32 matrices, multiplied as TF32

All matrices are row-major: a (m, k), b (k, n), c (m, n). CuPy calls the
library.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.rivals.absent import absent

# cudaDataType_t, cublasComputeType_t and cublasGemmAlgo_t.
REAL_32F, REAL_16F, REAL_16BF, REAL_E4M3 = 0, 2, 14, 28
COMPUTE_32F, COMPUTE_32F_FAST_TF32 = 68, 77
DEFAULT_ALGORITHM = -1


def fp16(a: Any, b: Any, c: Any) -> Any:
    """c = a b; a and b float16, c float32; C-contiguous.

    None under a sanitizer or profiler; where CuPy or its cuBLAS cannot run, the
    reason, and ct.ToolMissing while an example is recorded. Raises TypeError,
    ValueError for arrays that do not fit.
    """
    return _contestant(a, b, c, "float16", REAL_16F, COMPUTE_32F)


def bf16(a: Any, b: Any, c: Any) -> Any:
    """c = a b; a and b hold bf16 as uint16, c is float32. As `fp16`."""
    return _contestant(a, b, c, "uint16", REAL_16BF, COMPUTE_32F)


def tf32(a: Any, b: Any, c: Any, transpose_b: bool = False) -> Any:
    """c = a b, all float32, with factors rounded to TF32. As `fp16`.

    transpose_b: c = a b^T with b (n, k), as Hopper's tensor cores want it.
    """
    return _contestant(
        a, b, c, "float32", REAL_32F, COMPUTE_32F_FAST_TF32, transpose_b
    )


def started() -> Any:
    """CuPy, whose cuBLAS has started; else what stands for the rival: None
    under a tool, or the reason. Raises ct.ToolMissing while an example is
    recorded.
    """
    cp = ct.vendor.cupy()
    if cp is None:
        if ct.tool.running():
            return None
        return absent("CuPy cannot run here")
    try:  # the library is a package of its own, and may be missing
        cp.cuda.get_cublas_handle()
    except Exception as error:
        return absent(f"cuBLAS cannot run here ({error})", error)
    return cp


def _contestant(
    a: Any,
    b: Any,
    c: Any,
    dtype: str,
    factors: int,
    compute: int,
    transpose_b: bool = False,
) -> Any:
    take = ct.operands("cuBLAS")
    m, k = take.read("A", a, dtype, (None, None)).shape
    shape = (None, k) if transpose_b else (k, None)
    n = take.read("B", b, dtype, shape).shape[0 if transpose_b else 1]
    take.write("C", c, "float32", (m, n))
    cp = started()
    if not cp:
        return cp
    call = _product(cp, a, b, c, factors, compute, transpose_b)
    return ct.vendor.Vendor(call)


def _product(
    cp: Any,
    a: Any,
    b: Any,
    c: Any,
    factors: int,
    compute: int,
    transpose_b: bool,
) -> Callable[[], None]:
    cublas, handle = cp.cuda.cublas, cp.cuda.get_cublas_handle()
    (m, k), n = a.shape, c.shape[1]
    scalars = np.array([1, 0], "float32")  # alpha and beta, on the host
    left, right, target = (cp.asarray(x) for x in (a, b, c))
    one, zero = scalars.ctypes.data, scalars.ctypes.data + 4
    # cuBLAS counts down columns: to it our row-major arrays are their
    # transposes, and C^T = op(B)^T A^T. 1: transposed, 0: as it is.
    arguments = (
        handle, int(transpose_b), 0, n, m, k,
        one, right.data.ptr, factors, right.shape[1],
        left.data.ptr, factors, k,
        zero, target.data.ptr, REAL_32F, n,
        compute, DEFAULT_ALGORITHM,
    )  # fmt: skip
    kept = scalars, left, right, target  # cuBLAS sees only their addresses

    def run() -> None:
        assert kept
        cublas.setPointerMode(handle, 0)  # alpha and beta on the host
        cublas.gemmEx(*arguments)

    return run
