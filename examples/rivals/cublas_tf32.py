"""cuBLAS's product c = a b^T of fp32 matrices, multiplied as TF32, as a
contestant of `ct.bench`: the layout that Hopper's tensor cores ask for.

    run = cublas_tf32.transposed(a, b, c)
"""

from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.rivals.cublas_types import (
    COMPUTE_32F_FAST_TF32,
    DEFAULT_ALGORITHM,
    REAL_32F,
)


def transposed(a: Any, b: Any, c: Any) -> Any:
    """a (m, k), b (n, k), c (m, n), row-major float32. What comes back is as
    `cublas_types.fp16` says.
    """
    take = ct.operands("cuBLAS")
    m, k = take.read("A", a, "float32", (None, None)).shape
    n = take.read("B", b, "float32", (None, k)).shape[0]
    take.write("C", c, "float32", (m, n))
    cp = ct.vendor.cupy()
    if cp is None:
        if ct.tool.running():
            return None
        return ct.vendor.Missing("CuPy cannot run here")
    cublas, handle = cp.cuda.cublas, cp.cuda.get_cublas_handle()
    scalars = np.array([1, 0], "float32")  # alpha and beta, on the host
    left, right, target = (cp.asarray(x) for x in (a, b, c))
    one, zero = scalars.ctypes.data, scalars.ctypes.data + 4
    # cuBLAS counts down columns: to it our row-major arrays are their
    # transposes, and C^T = (B^T)^T A^T. 1: transposed, 0: as it is.
    arguments = (
        handle, 1, 0, n, m, k,
        one, right.data.ptr, REAL_32F, k,
        left.data.ptr, REAL_32F, k,
        zero, target.data.ptr, REAL_32F, n,
        COMPUTE_32F_FAST_TF32, DEFAULT_ALGORITHM,
    )  # fmt: skip
    kept = scalars, left, right, target  # cuBLAS sees only their addresses

    def run() -> None:
        assert kept
        cublas.setPointerMode(handle, 0)  # alpha and beta on the host
        cublas.gemmEx(*arguments)

    return ct.vendor.Vendor(run)
