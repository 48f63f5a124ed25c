"""Steps of decoding with random contents, for the benchmarks of two chapters.

    step = Step(64, 4096, heads=32, kv_heads=8)
    step.contiguous()  # keys side by side
    step.paged(16)()  # the same memory, as blocks in no order

All contents are random.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.llm.kernels.attention import decode
from cudatut.book.llm.decoding import rivals as decoding_rivals
from cudatut.book.llm.kernels.attention import flash
from cudatut.book.llm.kernels.gemv import Q4_1, Format


def random_bits(*shape: int) -> Any:
    """bf16 numbers of both signs from 0.5 to 1, on the GPU. Of many numbers the
    host makes those for one sequence, and copies them for each.
    """
    few = math.prod(shape) <= 1 << 28
    one = ct.rng(0).integers(
        0, 1 << 16, shape if few else shape[1:], dtype="uint16"
    )
    one &= 0x807F
    one |= 0x3F00
    if few:
        return ct.to_device(one)
    array = ct.empty(shape, "uint16")
    for i in range(shape[0]):
        array[i].set(one)
    return array


# --8<-- [start:blocks]
def random_blocks(
    outputs: int, inputs: int, format: Format,
    rng: np.random.Generator | None = None,
) -> np.ndarray:  # fmt: skip
    """W as a GGUF file stores it, on the host: any numbers, scales below 0.03.
    format: Q4_1 or Q8_0.
    """
    shape = outputs, inputs // 32, format.block
    w = (rng or ct.rng(1)).integers(0, 256, shape, dtype="uint8")
    w[..., 1] = 0x20 | w[..., 1] & 7  # the scale, fp16
    if format is Q4_1:
        w[..., 3] = 0xB0 | w[..., 3] & 3  # the minimum, negative
    return w.reshape(outputs, -1)


# --8<-- [end:blocks]


# --8<-- [start:step]
class Step:
    """A query for each of s sequences of n keys, and workspace for parts of 128
    keys or more. bytes: of keys and values; fast: keys of a part with which
    this batch is fast.
    """

    def __init__(self, s: int, n: int, heads: int, kv_heads: int, d: int = 128):
        self.n = n
        self.q = random_bits(s, heads, d)
        self.keys, self.values = (random_bits(s, n, kv_heads, d) for _ in "kv")
        self.lengths = ct.to_device(np.full(s, n, "int32"))
        self.out = ct.empty((s, heads, d), "uint16")
        self.lse = ct.empty((s, heads), "float32")
        need = decode.sizes(s, heads, kv_heads, d, n, split=128)
        self.partials = ct.empty(need.partials, "float32")
        self.tickets = ct.to_device(np.zeros(need.tickets, "uint32"))
        self.bytes = 2 * self.keys.nbytes
        blocks = kv_heads * ct.cdiv(heads // kv_heads, decode.HEADS)
        sms = ct.device().sm_count
        self.fast = max(128, decode.fast_split(s, blocks, n, sms))

    def contiguous(self, split: int = decode.SPLIT) -> None:
        decode.contiguous(
            self.q, self.keys, self.values, self.lengths, self.out, self.lse,
            self.partials, self.tickets, self.n, split,
        )  # fmt: skip

    def long_parts(self) -> None:
        self.contiguous(self.fast)

    def paged(
        self, block_size: int, split: int = decode.SPLIT
    ) -> Callable[[], None]:
        """The launch over the same memory as blocks of `block_size`, which
        divides n, in random order.
        """
        s, n, kv_heads, d = self.keys.shape
        blocks = ct.rng(1).permutation(s * n // block_size).astype("int32")
        return partial(
            decode.paged,
            self.q, self.keys.reshape(s * n, kv_heads, d),
            self.values.reshape(s * n, kv_heads, d),
            ct.to_device(blocks.reshape(s, -1)), self.lengths, block_size,
            self.out, self.lse, self.partials, self.tickets, n, split,
        )  # fmt: skip

    def flash(self) -> None:
        s, heads, d = self.out.shape
        flash.contiguous(
            self.q.reshape(s, 1, heads, d), self.keys, self.values,
            self.out.reshape(s, 1, heads, d),
        )  # fmt: skip

    def torch(self) -> Any:
        return decoding_rivals.sdpa(self.q, self.keys, self.values)


# --8<-- [end:step]
