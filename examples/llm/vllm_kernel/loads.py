"""Work for paged_scheme.cu and for decode.cu: the same queries, and the same
keys and values in the same blocks.

    load = Load(64, 2048, heads=32, kv_heads=8)
    load.vllm(scheme.V1)()  # in blocks of 16
    load.ours(16)()

All contents are random.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.llm.decoding.steps import random_bits
from cudatut.book.llm.kernels.attention import decode
from cudatut.book.llm.vllm_kernel import scheme

AT_ONCE = 1 << 20  # tokens that one launch stores


# --8<-- [start:load]
class Load:
    """A query for each of s sequences of n keys. bytes: of keys and values."""

    def __init__(self, s: int, n: int, heads: int, kv_heads: int, d: int = 128):
        self.s, self.n, self.kv_heads, self.d = s, n, kv_heads, d
        self.q = random_bits(s, heads, d)
        self.keys, self.values = (random_bits(s * n, kv_heads, d) for _ in "kv")
        self.lengths = ct.to_device(np.full(s, n, "int32"))
        self.out = ct.empty((s, heads, d), "uint16")
        self.lse = ct.empty((s, heads), "float32")
        need = decode.sizes(s, heads, kv_heads, d, n)
        self.partials = ct.empty(need.partials, "float32")
        self.tickets = ct.to_device(np.zeros(need.tickets, "uint32"))
        self.bytes = 2 * self.keys.nbytes
        self.stored: dict[tuple, tuple[Any, Any]] = {}

    def tables(self, block: int):
        """All blocks of `block` slots, in random order."""
        count = self.s * self.n // block
        blocks = ct.rng(1).permutation(count).astype("int32")
        return ct.to_device(blocks.reshape(self.s, -1))

    def ours(self, block: int = 16) -> Callable[[], None]:
        """decode.cu, over the slots as they lie."""
        return partial(
            decode.paged, self.q, self.keys, self.values, self.tables(block),
            self.lengths, block, self.out, self.lse, self.partials,
            self.tickets, self.n,
        )  # fmt: skip

    def vllm(self, step: scheme.Step, block: int = 16) -> Callable[[], None]:
        """A step of the scheme, over the same slots: stored anew where its
        layout is another one, once for all steps that share it."""
        layout = step.chunks, step.columns, block
        if layout not in self.stored:
            self.stored[layout] = self._stored(step, block)
        cache = scheme.Cache(
            self.s * self.n // block, self.kv_heads, self.d, block, step,
            self.stored[layout],
        )  # fmt: skip
        return cache.attention(
            self.q, self.tables(block), self.lengths, self.out, self.lse,
            self.n,
        )  # fmt: skip

    def _stored(self, step: scheme.Step, block: int) -> tuple[Any, Any]:
        """Keys and values in the layout of this step."""
        if not step.chunks and not step.columns:
            return self.keys, self.values
        tokens = self.s * self.n
        cache = scheme.Cache(
            tokens // block, self.kv_heads, self.d, block, step
        )
        for first in range(0, tokens, AT_ONCE):
            some = slice(first, min(first + AT_ONCE, tokens))
            slots = np.arange(some.start, some.stop, dtype="int32")
            cache.store(self.keys[some], self.values[some], ct.to_device(slots))
        return cache.keys, cache.values


# --8<-- [end:load]
