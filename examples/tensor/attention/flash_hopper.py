"""Attention over many query tokens on Hopper, by flash_hopper.cu; heads that it
does not have, and other GPUs, go to the kernel of the part `llm`.

    flash_hopper.attention(q, keys, values, out, causal=True)

Arrays are on the GPU, those of bf16 as uint16. What is launched depends on
shapes and addresses alone: a CUDA graph may hold it.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct
from cudatut.gpu.operands import Operand

from cudatut.book.published.attention import (
    flash,
)  # the kernel for everything else
from cudatut.book.published.attention import rows

SOURCE = "tensor/attention/flash_hopper.cu"
L2_SHARE = 32 << 20  # bytes of keys and values that are at work at a time
SAME_HEAD = 4  # blocks, at least, that use those of one head


class Plan(NamedTuple):
    """The template arguments of the kernel, as flash_hopper.cu says."""

    d: int
    consumers: int
    bn: int
    stages: int
    q_stages: int
    causal: bool
    pingpong: bool = True
    overlap: bool = True
    cluster: int = 1
    timed: bool = False
    maxima: bool = False

    @property
    def bm(self) -> int:
        """Queries of a block, or of two in a cluster."""
        return 64 * self.consumers * self.cluster

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory: buffers of keys, of values, and of
        queries, and what may be skipped to begin at a multiple of 1024."""
        queries = 64 * self.consumers * self.q_stages
        tokens = 2 * self.stages * self.bn + queries
        return 2 * self.d * tokens + 1024


# --8<-- [start:plan]
def plan_for(
    head_dim: int, causal: bool, q_len: int = 8192, k_len: int = 8192
) -> Plan:
    """The plan for heads of 64 or 128 elements.

    Many keys at a time mean few steps. What that costs is the second buffer for
    queries, and keys that no query sees: behind the last one and, with a causal
    mask, at the end of each tile of queries."""
    if head_dim == 128:
        if k_len < (8192 if causal else 4096):
            return Plan(128, 2, 128, 2, 2, causal)
        # Without turns, which were slower here: hopper_attention#ideas.
        return Plan(128, 2, 176, 2, 1, causal, pingpong=False)
    # Three warpgroups, unless a third or more of a last tile were to be empty,
    # and tiles are few.
    if q_len <= 512 and -q_len % 192 >= 64:
        return Plan(64, 2, 128, 2, 2, causal)
    return Plan(64, 3, 128, 2, 2, causal)


def fits(q: Any, keys: Any, values: Any, out: Any) -> bool:
    """Whether the kernel can take these: heads of 64 or 128, some keys, and
    rows that begin at multiples of 16 bytes, which the TMA asks for."""
    if not ct.supports(ct.device().compute_capability, "sm_90a"):
        return False
    for array in (q, keys, values, out):
        there = getattr(array, "__cuda_array_interface__", None)
        if there is None or 0 in there["shape"]:
            return False
        strides = there.get("strides") or ()
        if (there["data"][0] or 0) % 16 or any(s % 16 for s in strides[:-1]):
            return False
    return len(out.shape) == 4 and out.shape[-1] in (64, 128)


# --8<-- [end:plan]


# --8<-- [start:maps]
class Tokens(NamedTuple):
    """Heads of tokens as the TMA shall see them: [sequences, heads, parts of 64
    elements, tokens, 64]. A box then arrives as the kernel wants it."""

    address: int
    sequences: int
    tokens: int
    heads: int
    d: int
    stride: int  # elements from a token to the next

    dtype = np.dtype("uint16")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        row = 2 * self.stride
        return {
            "data": (self.address, True),
            "shape": (
                self.sequences,
                self.heads,
                self.d // 64,
                self.tokens,
                64,
            ),
            "strides": (row * self.tokens, 2 * self.d, 128, row, 2),
            "typestr": "<u2",
            "version": 3,
        }


@functools.lru_cache(maxsize=1024)
def tensor_map(tokens: Tokens, count: int, parts: int) -> bytes:
    """For boxes of `count` tokens and so many parts of 64 elements of a head. To
    make one takes the driver microseconds."""
    box = (1, 1, parts, count, 64)
    return ct.tensor_map(tokens, box, swizzle=128)


# --8<-- [end:maps]


@functools.cache
def instance(plan: Plan) -> ct.Kernel:
    arguments = ",".join(str(value).lower() for value in plan)
    return ct.Kernel(SOURCE, f"flash_hopper<{arguments}>", arch="sm_90a")


@functools.cache
def counter(stream: int) -> Any:
    """What blocks draw their work from: one for each stream, since launches of
    a stream run one after the other. They leave 0 behind."""
    return ct.to_device(np.zeros(1, "int32"))


# --8<-- [start:together]
def heads_together(
    plan: Plan, heads: int, kv_heads: int, k_len: int, pairs: int, blocks: int
) -> int:
    """How many heads, of `pairs` in all sequences, are at work at a time. With
    a causal mask long tiles of many heads come first, so that a block seldom
    ends late. But the keys and values of these heads should stay in L2. And
    several of the `blocks` should use the same ones while they come: memory
    cannot bring different ones to all SMs as fast as they are used."""
    if not plan.causal:
        return 1
    own = 4 * plan.d * k_len  # bytes of a head of keys and values
    at_a_time = max(1, min(L2_SHARE // own, blocks // SAME_HEAD))
    return min(pairs, at_a_time * (heads // kv_heads))


# --8<-- [end:together]


def attention(
    q: Any, keys: Any, values: Any, out: Any, lse: Any = None,
    causal: bool = False, scale: float | None = None, plan: Plan | None = None,
    together: int | None = None, stream: Any = None, times: Any = None,
) -> None:  # fmt: skip
    """out[i, j, h] = softmax(scale * q[i, j, h] K^T) V over the keys that query j
    of sequence i may see: all, or with `causal` those up to its position.

    Arrays are as in `flash.contiguous`, which also does what `fits` refuses, and
    says what does not fit at all: q bf16 [s, q_len, heads, head_dim], or with
    wider rows [s, q_len, width]; keys, values [s, k_len, kv_heads, head_dim];
    out as q; lse float32 [s, q_len, heads], or None. The last query is at the
    position of the last key. scale: by default 1 / sqrt(head_dim). times: for a
    plan that is timed, uint32, [consumers, 64, 5].

    Raises TypeError, ValueError as `flash.contiguous` does.
    """
    if plan is None and not fits(q, keys, values, out):
        flash.contiguous(
            q, keys, values, out, lse, causal, scale=scale, stream=stream
        )
        return
    take = ct.operands("flash_hopper.attention")
    to = take.write("out", out, "uint16", (None,) * 4, rows=2)
    cache = rows.cache_of(take, keys, values, None, 4, rows=2, fp8=False)
    of = flash.rows_of(take, q, cache, to, lse, tensor_maps=True)
    sequences, q_len, heads, d = to.shape
    of_whom, k_len, kv_heads, _ = cache.keys.shape
    longest = max(q_len, k_len)
    if of_whom != sequences or not k_len or longest > flash.LONGEST:
        raise ValueError(
            f"{take.launcher}: {sequences} sequences of {q_len} queries cannot have keys of shape {list(cache.keys.shape)}; 1 to {flash.LONGEST} of each"
        )
    plan = plan or plan_for(d, causal, q_len, k_len)
    if plan.d != d or plan.causal != causal:
        raise ValueError(
            f"{take.launcher}: {plan} is not for heads of {d} elements, {causal=}"
        )
    scale = 1 / math.sqrt(d) if scale is None else scale
    if not scale > 0 or (together is not None and together < 1):
        raise ValueError(
            f"{take.launcher}: {scale=}, {together=}: above 0, and at least 1"
        )
    of_times = rows.NULL
    if plan.timed or times is not None:
        shape = plan.consumers, 64, 5
        of_times = take.write("times", times, "uint32", shape).address
    pairs = sequences * heads
    tiles = ct.cdiv(q_len, plan.bm)
    items = tiles * pairs
    blocks = min(items, ct.device().sm_count // plan.cluster) * plan.cluster
    parts = d // 64 // plan.cluster  # that a block of a cluster copies
    if items + blocks > rows.BLOCKS:
        raise ValueError(f"{take.launcher}: {items} tiles of queries: too many")
    if not items:
        return

    def tokens(at: Operand, length: int, of_heads: int) -> Tokens:
        return Tokens(
            int(at.address), sequences, length, of_heads, d, at.stride
        )

    together = together or heads_together(
        plan, heads, kv_heads, k_len, pairs, blocks
    )
    instance(plan)(
        tensor_map(tokens(of.q, q_len, heads), 64, d // 64),
        tensor_map(tokens(cache.keys, k_len, kv_heads), plan.bn, parts),
        tensor_map(tokens(cache.values, k_len, kv_heads), plan.bn, parts),
        to.address, to.stride, of.lse,
        counter(stream.handle if stream is not None else 0), heads, kv_heads,
        q_len, k_len, tiles, items, together, scale * flash.LOG2_E, of_times,
        grid=blocks, block=128 * (plan.consumers + 1), shared=plan.shared,
        stream=stream,
    )  # fmt: skip
