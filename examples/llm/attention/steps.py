"""Attention by separate kernels, which pass the matrix of all pairs of tokens
through the memory.

    room = Room(heads, m, n)
    attention(q, k, v, out, room, causal=True)            # attention.cu
    on_tensor_cores(q, k, turned(v), out, room)           # linear.cu

q, out: bf16 as uint16, [heads, m, d]; k, v: [kv_heads, n, d]. The last query is
at the position of the last key.
"""

import math
from functools import cache
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.llm.kernels.linear import linear
from cudatut.book.llm.kernels.row_softmax import softmax

from cudatut.book.llm.kernels.rows import CTYPES, FLOATS, MOST, grid

SOURCE = "llm/attention/attention.cu"
TILE = 64


class Room:
    """Memory for the scores, fp32, and for the weights, bf16: [heads, m, n]."""

    def __init__(self, heads: int, m: int, n: int):
        self.scores = ct.empty((heads, m, n), "float32")
        self.weights = ct.empty((heads, m, n), "uint16")

    @property
    def nbytes(self) -> int:
        return self.scores.nbytes + self.weights.nbytes


@cache
def _kernel(transposed: bool, out: str) -> Any:
    name = f"attention_product<{str(transposed).lower()}, {CTYPES[out]}>"
    return ct.Kernel(SOURCE, name)


# --8<-- [start:product]
def product(
    a: Any, b: Any, out: Any, transposed: bool, stream: Any = None
) -> None:
    """out[h] = a[h] @ b[h / group], or a[h] @ b[h / group].T. a, b: bf16, out:
    bf16 or fp32, all contiguous. Raises TypeError, ValueError.
    """
    take, how = ct.operands("product"), {"most": MOST}
    of_a = take.read("a", a, "uint16", (None, None, None), **how)
    heads, m, depth = of_a.shape
    shape = (None, None, depth) if transposed else (None, depth, None)
    of_b = take.read("b", b, "uint16", shape, **how)
    of_heads, n = of_b.shape[0], of_b.shape[1 if transposed else 2]
    to = take.write("out", out, FLOATS, (heads, m, n))
    if not of_heads or heads % of_heads:
        raise ValueError(f"product: {heads} heads cannot share {of_heads}")
    tiles = grid(take, ct.cdiv(n, TILE), ct.cdiv(m, TILE), heads)
    if 0 in to.shape:
        return
    _kernel(transposed, to.dtype)(
        of_a.address, of_b.address, to.address, m, n, depth, heads // of_heads,
        grid=tiles, block=256, stream=stream,
    )  # fmt: skip


# --8<-- [end:product]


# --8<-- [start:softmax]
def weigh(room: Room, head_dim: int, causal: bool, stream: Any = None) -> None:
    """Each row of scores, divided by sqrt(head_dim), becomes weights."""
    heads, m, n = room.scores.shape
    rows = heads * m, n
    softmax(
        room.scores.reshape(rows), room.weights.reshape(rows),
        scale=1 / math.sqrt(head_dim), queries=m if causal else 0,
        stream=stream,
    )  # fmt: skip


# --8<-- [end:softmax]


# --8<-- [start:attention]
def attention(
    q: Any, k: Any, v: Any, out: Any, room: Room, causal: bool = False,
    stream: Any = None,
) -> None:  # fmt: skip
    """out = softmax(q k^T / sqrt(d)) v, by three launches."""
    product(q, k, room.scores, transposed=True, stream=stream)
    weigh(room, q.shape[2], causal, stream)
    product(room.weights, v, out, transposed=False, stream=stream)


# --8<-- [end:attention]


def turned(v: Any) -> Any:
    """v as [kv_heads, d, n]: linear.cu multiplies by transposed matrices."""
    return ct.to_device(np.ascontiguousarray(v.get().transpose(0, 2, 1)))


def scores_by_linear(q: Any, k: Any, room: Room, stream: Any = None) -> None:
    """The scores, head by head, on the tensor cores."""
    group = len(q) // len(k)
    for h in range(len(q)):
        linear(q[h], k[h // group], room.scores[h], stream=stream)


def mix_by_linear(
    room: Room, v_turned: Any, out: Any, stream: Any = None
) -> None:
    """The weighted sums, likewise; n a multiple of 8."""
    group = len(out) // len(v_turned)
    for h in range(len(out)):
        v = v_turned[h // group]
        linear(room.weights[h], v, out[h], stream=stream)


def on_tensor_cores(
    q: Any, k: Any, v_turned: Any, out: Any, room: Room, causal: bool = False,
    stream: Any = None,
) -> None:  # fmt: skip
    """As `attention`, with the products of linear.cu."""
    scores_by_linear(q, k, room, stream)
    weigh(room, q.shape[2], causal, stream)
    mix_by_linear(room, v_turned, out, stream)
