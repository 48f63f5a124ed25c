"""Attention over all keys from that over some and that over the others, by
merge.cu.

    merge.merge(a, lse_a, b, lse_b, out, lse)

All arrays are on the GPU, those of bf16 as uint16. Nothing is allocated.
"""

import functools
from typing import Any

import cudatut as ct

from cudatut.book.llm.kernels.rows import MOST, begin_at, grid


@functools.cache
def _kernel() -> ct.Kernel:
    return ct.Kernel("llm/kernels/attention/merge.cu", "merge")


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
    All are contiguous. Raises TypeError, ValueError.
    """
    take = ct.operands("merge")
    first = take.read("a", a, "uint16", most=MOST)
    shape = first.shape
    if not shape or shape[-1] % 8 or not shape[-1]:
        raise ValueError(
            f"merge: a is {list(shape)}; its last extent must be a multiple of 8"
        )
    second = take.read("b", b, "uint16", shape)
    lses = [
        take.read(name, array, "float32", shape[:-1]).address
        for name, array in (("lse_a", lse_a), ("lse_b", lse_b))
    ]
    # A thread reads of a and b what it replaces, and nothing else of them. Of
    # an lse several threads read what one of them replaces.
    to = take.write("out", out, "uint16", shape, over=("a", "b"))
    of_lse = take.write("lse", lse, "float32", shape[:-1])
    begin_at(take, 16, first, second, to)
    rows, dim = first.count, first.width
    if not rows:
        return
    blocks = grid(take, ct.cdiv(rows * (dim // 8), 256))
    _kernel()(
        first.address, lses[0], second.address, lses[1], to.address,
        of_lse.address, rows, dim, grid=blocks, block=256, stream=stream,
    )  # fmt: skip
