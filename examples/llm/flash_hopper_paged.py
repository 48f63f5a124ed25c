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
import flash
import rows

hopper = ct.shared("tensor/flash_hopper")  # its tensor maps
SOURCE = "llm/flash_hopper_paged.cu"
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
    Raises ValueError, TypeError.
    """
    if len(out.shape) != 3 or len(keys.shape) != 3:
        raise ValueError(
            f"out of shape {out.shape}, keys of {keys.shape}: [n, heads, head_dim] and [slots, kv_heads, head_dim]"
        )
    (n, heads, d), (slots, kv_heads, key_dim) = out.shape, keys.shape
    if key_dim != d or d not in (64, 128):
        raise ValueError(
            f"queries of {d} and keys of {key_dim} elements: 64 or 128"
        )
    if kv_heads < 1 or heads % kv_heads or values.shape != keys.shape:
        raise ValueError(
            f"{heads} query heads cannot share keys of shape {keys.shape} and values of {values.shape}"
        )
    if block_size not in BLOCK_SIZES or slots % block_size:
        raise ValueError(
            f"{slots} slots in blocks of {block_size} tokens: of {BLOCK_SIZES}"
        )
    scale = 1 / math.sqrt(d) if scale is None else scale
    if not scale > 0:
        raise ValueError(f"{scale=}: above 0")
    # The arrays keep their names until the launch: these may be all that keeps
    # them in memory.
    of_lengths, (sequences,) = rows.contiguous(
        lengths, "lengths", "int32", (None,)
    )
    of_starts = rows.ints(starts, "starts", sequences + 1)
    of_tables, (_, width) = rows.contiguous(
        tables, "tables", "int32", (sequences, None)
    )
    of_work, (items, _) = rows.contiguous(work, "work", "int32", (None, 2))
    of_q = rows.spaced(q, "q", 1, heads * d)
    of_keys = rows.spaced(keys, "keys", 1, kv_heads * d)
    of_values = rows.spaced(values, "values", 1, kv_heads * d)
    of_out = rows.spaced(out, "out", 1, heads * d)
    if of_q.count != of_out.count:
        raise ValueError(f"{of_q.count} rows of q for {of_out.count} of out")
    if any(
        a.stride % 8 or int(a.address) % 16
        for a in (of_q, of_keys, of_values, of_out)
    ):
        raise ValueError(
            "rows of q, keys, values and out must begin at multiples of 16 bytes"
        )
    of_lse = rows.NULL
    if lse is not None:
        of_lse, _ = rows.contiguous(lse, "lse", "float32", out.shape[:2])
    plan = plan or plan_for(d, block_size)
    blocks = min(items * heads, ct.device().sm_count)
    if items * heads + blocks >= 1 << 31:
        raise ValueError(f"{items} tiles of queries of {heads} heads: too many")
    if not n or not slots or not blocks:
        return

    # --8<-- [start:maps]
    def in_blocks(at: rows.Spaced) -> bytes:
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

    queries = hopper.Tokens(int(of_q.address), 1, n, heads, d, of_q.stride)
    # --8<-- [end:maps]
    instance(plan)(
        hopper.tensor_map(queries, 64, d // 64), in_blocks(of_keys),
        in_blocks(of_values), of_out.address, of_out.stride, of_lse,
        counters(stream.handle if stream is not None else 0), heads, kv_heads,
        scale * flash.LOG2_E, items, of_work, of_starts, of_lengths, of_tables,
        width, grid=blocks, block=128 * (plan.consumers + 1),
        shared=plan.shared, stream=stream,
    )  # fmt: skip
