"""cuBLAS's own grouped product, cublasGemmGroupedBatchedEx, as a contestant of
`ct.bench`: one call for products of different sizes.

The host has to know the sizes. PyTorch has loaded the library; ctypes calls it.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.rivals import torch_rival
from cudatut.book.rivals.cublas_types import COMPUTE_32F, REAL_16BF
from cudatut.book.rivals.libraries import loaded, pointer

AS_IT_IS, TRANSPOSED = 0, 1  # cublasOperation_t


def product(x: Any, weights: Any, ends: Sequence[int], out: Any) -> Any:
    """out[first:end] = x[first:end] weights[g]^T for each group, bf16 as uint16.

    ends: on the host. None under a sanitizer or profiler; where the library
    cannot do it, the reason. Raises TypeError, ValueError for arrays that do
    not fit.
    """
    take = ct.operands("cuBLAS")
    wants = {"align": 16}  # as the kernels that it chooses read and write
    rows, k = take.read("x", x, "uint16", (None, None), **wants).shape
    groups, n, _ = take.read(
        "weights", weights, "uint16", (None, None, k), **wants
    ).shape
    take.write("out", out, "uint16", (rows, n), **wants)
    if len(ends) != groups or any(
        not 0 <= first <= end <= rows for first, end in zip([0, *ends], ends)
    ):
        raise ValueError(
            f"cuBLAS: {len(ends)} ends for {groups} groups; they rise up to {rows}"
        )

    def ready(torch, x, w, out):
        torch.mm(x[:1], w[0].t())  # loads the library
        blas = loaded("libcublas")
        if not hasattr(blas, "cublasGemmGroupedBatchedEx"):  # or too old
            raise ct.ToolMissing("cuBLAS has no grouped product here")
        return _call(blas, x, w, ends, out)

    return torch_rival.rival(ready, x, weights, out, vendor=True)


def _call(blas: ctypes.CDLL, x: Any, w: Any, ends: Sequence[int], out: Any):
    n, k = w.shape[1:]
    some = [
        (g, first, end - first)
        for g, (first, end) in enumerate(zip([0, *ends], ends))
        if end > first
    ]
    count = len(some)

    def ints(values):
        return (ctypes.c_int * count)(*values)

    def pointers(values):
        return ct.to_device(np.array(list(values), "uint64"))

    # cuBLAS counts down columns: to it our matrices are their transposes, and
    # C^T = W X^T. Its first factor is W, which to it is k x n.
    size, base = 2, (w.data_ptr(), x.data_ptr(), out.data_ptr())
    first, second, target = (
        pointers(base[0] + size * n * k * g for g, _, _ in some),
        pointers(base[1] + size * k * row for _, row, _ in some),
        pointers(base[2] + size * n * row for _, row, _ in some),
    )
    ones = (ctypes.c_float * count)(*[1.0] * count)
    zeros = (ctypes.c_float * count)()
    handle = ctypes.c_void_p()
    if status := blas.cublasCreate_v2(ctypes.byref(handle)):
        raise ct.ToolMissing(f"cublasCreate: status {status}")

    arguments = (
        handle, ints([TRANSPOSED] * count), ints([AS_IT_IS] * count),
        ints([n] * count), ints(m for _, _, m in some), ints([k] * count),
        ones, pointer(first), REAL_16BF, ints([k] * count),
        pointer(second), REAL_16BF, ints([k] * count),
        zeros, pointer(target), REAL_16BF, ints([n] * count),
        count, ints([1] * count), COMPUTE_32F,
    )  # fmt: skip
    kept = x, w, out, first, second, target  # it sees only addresses

    def run() -> None:
        assert kept
        if status := blas.cublasGemmGroupedBatchedEx(*arguments):
            raise ct.ToolMissing(f"cuBLAS's grouped product: status {status}")

    return run
