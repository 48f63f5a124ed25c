"""An RMSNorm between two products, in halves: row_scale.cuh."""

import ctypes
from typing import Any, NamedTuple

import cudatut as ct


# --8<-- [start:norm]
class Norm(NamedTuple):
    """An RMSNorm between two products. `linear_hopper.added` computes the first
    half: h, bf16, [rows, columns], and sums of squares, fp32, with room for
    [rows, columns / 16]; the other product the second.
    """

    weight: Any
    h: Any
    squares: Any
    eps: float


# --8<-- [end:norm]


class RowScale(ctypes.Structure):
    """What the kernel of the other product is told."""

    _fields_ = [
        ("squares", ctypes.c_uint64), ("parts", ctypes.c_int),
        ("share", ctypes.c_float), ("eps", ctypes.c_float),
    ]  # fmt: skip


def row_scale(norm: Norm | None, squares: int, x: Any) -> RowScale:
    """For the product of x, the `h` of norm; squares: columns of each sum. None:
    all rows are multiplied by 1.
    """
    columns = x.shape[1]
    if not norm:
        return RowScale(0, 0, 1.0, 0.0)
    parts = ct.cdiv(columns, squares)
    at = int(norm.squares.__cuda_array_interface__["data"][0])
    return RowScale(at, parts, 1 / columns, norm.eps)
