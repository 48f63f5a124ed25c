"""Attention over all keys from that over some and that over the others, by
merge.cu.

    merge.merge(a, lse_a, b, lse_b, out, lse)

All arrays are on the GPU, those of bf16 as uint16. Nothing is allocated.
"""

import functools
import math
from typing import Any

import cudatut as ct
from rows import address


@functools.cache
def _kernel() -> ct.Kernel:
    return ct.Kernel("llm/merge.cu", "merge")


def merge(
    a: Any,
    lse_a: Any,
    b: Any,
    lse_b: Any,
    out: Any,
    lse: Any,
    stream: Any = None,
) -> None:
    """Attention over two sets of keys from that over each.

    a, b, out: bf16, of any one shape whose last extent is a multiple of 8; out
    may be a or b. lse_a, lse_b, lse: float32, of that shape without the last
    extent, natural logarithms; -inf or +inf: no keys, whose row is not read.
    Raises ValueError for shapes that do not fit.
    """
    rows, dim = math.prod(out.shape[:-1]), out.shape[-1]
    if dim % 8 or not a.shape == b.shape == out.shape:
        raise ValueError(
            f"a, b, out of shapes {a.shape}, {b.shape}, {out.shape}: one shape, whose last extent is a multiple of 8"
        )
    if any(x.shape != out.shape[:-1] for x in (lse_a, lse_b, lse)):
        raise ValueError(f"each lse must have the shape {out.shape[:-1]}")
    if any(address(x) % 16 for x in (a, b, out)):
        raise ValueError("a, b and out must begin at multiples of 16 bytes")
    if address(lse) in (address(lse_a), address(lse_b)) and rows:
        raise ValueError("lse must be an array of its own")
    if rows and dim:
        _kernel()(
            a, lse_a, b, lse_b, out, lse, rows, dim,
            grid=ct.cdiv(rows * (dim // 8), 256), block=256, stream=stream,
        )  # fmt: skip
