"""Attention of prompts on Hopper, by flash_hopper_paged.cu: of a batch of
unequal sequences, over keys and values in blocks.

    if flash_hopper_paged.available(head_dim, block_size):
        plan = flash_hopper_paged.plan_for(head_dim, block_size)
        work = flash.order(batch.starts, batch.lengths, plan)
        flash_hopper_paged.paged(q, keys, values, out, starts, lengths, tables,
                                 block_size, ct.to_device(work))

Arrays are as in `flash.paged`. Nothing is allocated but, once for each stream,
two numbers, and what is launched depends on shapes and addresses alone: a CUDA
graph may hold it.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct
from cudatut.book.llm.kernels.attention import flash
from cudatut.gpu.operands import Operand

from cudatut.book.llm.kernels.rows import BLOCKS, cache_of

from cudatut.book.published.hopper_attention import (
    flash_hopper as hopper,
)  # its tensor maps

SOURCE = "llm/kernels/attention/flash_hopper_paged.cu"
BLOCK_SIZES = 8, 16, 32, 64, 128  # tokens
LEAST = 32  # tokens of a sequence, on average: fewer leave tiles empty


class Plan(NamedTuple):
    """The template arguments of the kernel, as flash_hopper_paged.cu says."""

    d: int
    consumers: int
    bn: int
    stages: int
    q_stages: int
    block: int
    pingpong: bool = True

    @property
    def bm(self) -> int:
        """Queries of a tile; `flash.order` asks for it."""
        return 64 * self.consumers

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory: buffers of keys, of values, and of
        queries, and what may be skipped to begin at a multiple of 1024."""
        tokens = 2 * self.stages * self.bn + self.bm * self.q_stages
        return 2 * self.d * tokens + 1024


# --8<-- [start:choose]
def plan_for(head_dim: int, block_size: int) -> Plan:
    """For heads of 64 or 128 elements. Its tiles are those of flash.cu, so that
    a list of work serves both."""
    return Plan(head_dim, 2, 128, 2, 2, block_size)


def available(head_dim: int, block_size: int) -> bool:
    """Whether this GPU, compute capability 9.0, has a kernel for these."""
    return (
        ct.device().compute_capability == (9, 0)
        and head_dim in (64, 128)
        and block_size in BLOCK_SIZES
    )


def worthwhile(tokens: int, sequences: int) -> bool:
    """Whether tiles of so many queries are full enough."""
    return tokens >= LEAST * sequences


# --8<-- [end:choose]


def name(plan: Plan) -> str:
    """The kernel's name with its template arguments."""
    arguments = ",".join(str(value).lower() for value in plan)
    return f"flash_hopper_paged<{arguments}>"


@functools.cache
def instance(plan: Plan) -> ct.Kernel:
    return ct.Kernel(SOURCE, name(plan), arch="sm_90a")


def instances(head_dim: int, block_size: int) -> list[tuple]:
    """The kernel of `plan_for`, for `ct.compile_ahead`."""
    plan = plan_for(head_dim, block_size)
    return [(SOURCE, name(plan), None, (), "sm_90a")]


@functools.cache
def counters(stream: int) -> Any:
    """What blocks draw their work from, and count their ends in: one pair for
    each stream, since launches of a stream run one after the other. They leave
    zeros behind."""
    return ct.to_device(np.zeros(2, "uint32"))


def paged(
    q: Any, keys: Any, values: Any, out: Any, starts: Any, lengths: Any,
    tables: Any, block_size: int, work: Any, lse: Any = None,
    scale: float | None = None, plan: Plan | None = None, stream: Any = None,
) -> None:  # fmt: skip
    """As `flash.paged`, causal; the cache is bf16, and a sequence has at least
    as many keys as queries.

    work: what `flash.order` says for the plan; by default that of `plan_for`.
    Raises TypeError, ValueError.
    """
    take = ct.operands("flash_hopper_paged.paged")
    to = take.write("out", out, "uint16", (None,) * 3, rows=1)
    cache = cache_of(take, keys, values, None, 3, rows=1, fp8=False)
    of_rows = flash.rows_of(take, q, cache, to, lse, tensor_maps=True)
    lists = flash.lists_of(take, starts, lengths, tables, block_size, work)
    (n, heads, d), (slots, kv_heads, _) = to.shape, cache.keys.shape
    if d not in (64, 128):
        raise ValueError(f"{take.launcher}: heads of {d} elements: 64 or 128")
    if block_size not in BLOCK_SIZES or slots % block_size:
        raise ValueError(
            f"{take.launcher}: {slots} slots in blocks of {block_size} tokens: of {BLOCK_SIZES}"
        )
    scale = 1 / math.sqrt(d) if scale is None else scale
    if not scale > 0:
        raise ValueError(f"{take.launcher}: {scale=}: above 0")
    plan = plan or plan_for(d, block_size)
    blocks = min(lists.items * heads, ct.device().sm_count)
    if lists.items * heads + blocks > BLOCKS:
        raise ValueError(
            f"{take.launcher}: {lists.items} tiles of queries of {heads} heads: too many"
        )
    if not n or not slots or not blocks:
        return

    # --8<-- [start:maps]
    def in_blocks(at: Operand) -> bytes:
        """The cache: blocks as sequences, and parts of a head as heads."""
        parts = kv_heads * d // 64
        tokens = hopper.Tokens(
            int(at.address),
            slots // block_size,
            block_size,
            parts,
            64,
            at.stride,
        )
        return hopper.tensor_map(tokens, block_size, 1)

    of_q, items = of_rows.q, lists.items
    queries = hopper.Tokens(int(of_q.address), 1, n, heads, d, of_q.stride)
    # --8<-- [end:maps]
    instance(plan)(
        hopper.tensor_map(queries, 64, d // 64), in_blocks(cache.keys),
        in_blocks(cache.values), to.address, to.stride, of_rows.lse,
        counters(stream.handle if stream is not None else 0), heads, kv_heads,
        scale * flash.LOG2_E, items, *lists[1:6], grid=blocks,
        block=128 * (plan.consumers + 1), shared=plan.shared, stream=stream,
    )  # fmt: skip
