"""Attention over many query tokens, by flash.cu: of sequences side by side, or
of a batch of unequal ones over keys and values in blocks.

    flash.contiguous(q, keys, values, out, causal=True)

    tile = flash.tile_for(head_dim)
    work = ct.to_device(flash.order(batch.starts, batch.lengths, tile))
    flash.paged(q, keys, values, out, starts, lengths, tables, block_size, work)

All arrays but those of `order` are on the GPU, those of bf16 as uint16, of FP8
as uint8. Nothing is allocated, and what is launched depends on shapes alone: a
CUDA graph may hold it.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct
from cudatut.gpu.operands import Operand, Operands

from cudatut.book.llm.kernels.rows import (
    BLOCKS,
    NULL,
    Cache,
    begin_at,
    cache_of,
    grid,
    queries_of,
)

SOURCE = "llm/kernels/attention/flash.cu"
LONGEST = (1 << 30) - 256  # tokens of a sequence
LOG2_E = math.log2(math.e)


class Tile(NamedTuple):
    """What a block computes: `bm` queries, `bn` keys at a time, elements of a
    head padded to `d`, by `warps`; `blocks` of them on an SM."""

    d: int
    bm: int
    bn: int
    warps: int
    blocks: int

    def shared(self, paged: bool) -> int:
        """Bytes of shared memory: queries, two tiles of keys and of values, two
        lists of slots."""
        slots = 2 * 4 * self.bn if paged else 0
        return 2 * self.d * (self.bm + 4 * self.bn) + slots


# --8<-- [start:tile]
def tile_for(head_dim: int) -> Tile:
    """The tile for a head. bn is part of what a result's bits depend on.

    Raises ValueError for heads of more than 256 elements.
    """
    if not 1 <= head_dim <= 256:
        raise ValueError(f"heads of {head_dim} elements: 1 to 256")
    # 112 would need more registers than a thread has, which 128 does not.
    d = 128 if 96 < head_dim <= 128 else ct.cdiv(head_dim, 16) * 16
    # 32 queries of a warp use each tile of keys that it reads from shared
    # memory twice, but 16 have to do where results need too many registers.
    # Copies of single elements need some, too.
    if d <= 64 or (d <= 128 and head_dim % 8 == 0):
        return Tile(d, 128, 64, 4, 2)
    return Tile(d, 64, 64 if d <= 160 else 32, 4, 2)


# --8<-- [end:tile]


def most_items(tokens: int, sequences: int, tile: Tile) -> int:
    """Rows that `order` needs at most for so many tokens of so many sequences:
    each may begin and end in the middle of a tile."""
    return tokens // tile.bm + 2 * sequences


# --8<-- [start:order]
def order(
    starts: np.ndarray, lengths: np.ndarray, tile: Tile, room: int | None = None
) -> np.ndarray:
    """The work of a launch of `paged`, int32 [room, 2]: pairs of a sequence and a
    tile of its queries, those with many keys first; -1 stands in rows that are
    left over. room: by default as many as there are.

    starts, lengths: of a batch, on the host. Raises ValueError if there is too
    little room.
    """
    starts, lengths = np.asarray(starts), np.asarray(lengths)
    queries = np.diff(starts)
    # Tiles begin at positions that are multiples of bm.
    first = (lengths - queries) // tile.bm
    tiles = np.where(queries > 0, -(-lengths // tile.bm) - first, 0)
    sequence = np.repeat(np.arange(len(lengths)), tiles)
    number = np.arange(len(sequence)) - np.repeat(
        np.cumsum(tiles) - tiles, tiles
    )
    keys = np.minimum(
        (first[sequence] + number + 1) * tile.bm, lengths[sequence]
    )
    longest_first = np.argsort(-keys, kind="stable")
    room = len(sequence) if room is None else room
    if len(sequence) > room:
        raise ValueError(f"{len(sequence)} tiles do not fit into {room} rows")
    work = np.full((room, 2), -1, "int32")
    work[: len(sequence), 0] = sequence[longest_first]
    work[: len(sequence), 1] = number[longest_first]
    return work


# --8<-- [end:order]


@functools.cache
def instance(
    tile: Tile, paged: bool, aligned: bool, softcap: bool,
    cache: tuple[str, ...] = (),
) -> ct.Kernel:  # fmt: skip
    """cache: as `rows.Cache.arguments`."""
    flags = (str(flag).lower() for flag in (paged, aligned, softcap))
    arguments = map(str, (*tile, *flags, *cache))
    return ct.Kernel(SOURCE, f"flash<{','.join(arguments)}>")


def contiguous(
    q: Any, keys: Any, values: Any, out: Any, lse: Any = None,
    causal: bool = False, window: int = 0, scale: float | None = None,
    softcap: float = 0.0, tile: Tile | None = None, stream: Any = None,
    scales: Any = None,
) -> None:  # fmt: skip
    """out[i, j, h] = softmax(scale * q[i, j, h] K^T) V over the keys that query j
    of sequence i may see: all, or with `causal` those up to its position.

    q: bf16, [s, q_len, heads, head_dim], or [s, q_len, width], whose rows begin
    with that, as those of a fused projection do. keys, values: bf16, [s, k_len,
    kv_heads, head_dim]. out: bf16, [s, q_len, heads, head_dim]. lse: float32,
    [s, q_len, heads], the natural logarithm of the sum of exponentials, or None.
    Rows may lie apart, evenly. The last query is at the position of the last
    key; a query without keys gets zeros, and an lse of -inf.

    window: only keys less than that before a query's position; 0: all. scale:
    by default 1 / sqrt(head_dim). softcap: scores s become softcap * tanh(s /
    softcap); 0: they stay.

    keys and values may also be FP8, uint8, if head_dim is a multiple of 16.
    scales: float32, [2, kv_heads], what keys and what values of each KV head
    are multiplied by then.

    out is none of the others. Raises TypeError, ValueError.
    """
    take = ct.operands("flash.contiguous")
    to = take.write("out", out, "uint16", (None,) * 4, rows=2)
    cache = cache_of(take, keys, values, scales, 4, rows=2)
    sequences, q_len, *_ = to.shape
    _, k_len, _, head_dim = cache.keys.shape
    if cache.keys.shape[0] != sequences or max(q_len, k_len) > LONGEST:
        raise ValueError(
            f"flash.contiguous: {sequences} sequences of {q_len} queries cannot have keys of shape {list(cache.keys.shape)}, up to {LONGEST} of each"
        )
    tile = tile or tile_for(head_dim)
    tiles = ct.cdiv(q_len + (k_len - q_len) % tile.bm, tile.bm)
    lists = Lists(tiles * sequences)
    _launch(
        take, tile, False, q, cache, to, lse, causal, window, scale, softcap,
        (q_len, k_len), lists, stream,
    )  # fmt: skip


class Lists(NamedTuple):
    """What a launch over a batch reads beside its queries, keys and values."""

    items: int  # rows of work
    work: np.uint64 = NULL
    starts: np.uint64 = NULL
    lengths: np.uint64 = NULL
    tables: np.uint64 = NULL
    width: int = 0  # of a row of tables
    block_size: int = 1


def lists_of(
    take: Operands, starts: Any, lengths: Any, tables: Any, block_size: int,
    work: Any,
) -> Lists:  # fmt: skip
    """Arrays as `paged` says. Raises TypeError, ValueError."""
    of_lengths = take.read("lengths", lengths, "int32", (None,))
    (sequences,) = of_lengths.shape
    of_starts = take.read("starts", starts, "int32", (sequences + 1,))
    of_tables = take.read("tables", tables, "int32", (sequences, None))
    of_work = take.read("work", work, "int32", (None, 2))
    if block_size < 1:
        raise ValueError(
            f"{take.launcher}: blocks of {block_size} tokens: 1 at least"
        )
    return Lists(
        of_work.count, of_work.address, of_starts.address, of_lengths.address,
        of_tables.address, of_tables.width, block_size,
    )  # fmt: skip


def paged(
    q: Any, keys: Any, values: Any, out: Any, starts: Any, lengths: Any,
    tables: Any, block_size: int, work: Any, lse: Any = None,
    causal: bool = True, window: int = 0, scale: float | None = None,
    softcap: float = 0.0, tile: Tile | None = None, stream: Any = None,
    scales: Any = None,
) -> None:  # fmt: skip
    """As `contiguous`, of the n tokens of a `batch.Batch`, each with its
    sequence's keys and values in blocks of `block_size`.

    q: bf16, [n, heads, head_dim] or [n, width]. keys, values: bf16, [slots,
    kv_heads, head_dim]. out: bf16, [n, heads, head_dim]. lse: float32, [n,
    heads], or None. starts, lengths, tables: int32, as in `batch.Batch`, on the
    GPU; rows of q and out from starts[s] on are left alone. work: int32, what
    `order` says for the same tile. Only rows of q, keys, values and out may lie
    apart.
    """
    take = ct.operands("flash.paged")
    to = take.write("out", out, "uint16", (None,) * 3, rows=1)
    cache = cache_of(take, keys, values, scales, 3, rows=1)
    lists = lists_of(take, starts, lengths, tables, block_size, work)
    _launch(
        take, tile or tile_for(cache.keys.shape[2]), True, q, cache, to, lse,
        causal, window, scale, softcap, (0, 0), lists, stream,
    )  # fmt: skip


class Rows(NamedTuple):
    """Queries, and where log-sum-exps go."""

    q: Operand
    lse: np.uint64


def rows_of(
    take: Operands, q: Any, cache: Cache, out: Operand, lse: Any,
    tensor_maps: bool = False,
) -> Rows:  # fmt: skip
    """Checks also that keys, values and out, which are taken already, go with
    these, and that a kernel which counts what lies between rows in an int can
    have them. tensor_maps: of q, keys and values, whose rows must then not lie
    in one another. Raises TypeError, ValueError.
    """
    *_, heads, head_dim = out.shape
    *_, kv_heads, key_dim = cache.keys.shape
    if key_dim != head_dim or kv_heads < 1 or heads % kv_heads:
        raise ValueError(
            f"{take.launcher}: {heads} query heads of {head_dim} elements cannot share keys of shape {list(cache.keys.shape)}"
        )
    of_q = queries_of(take, q, out.shape)
    arrays = of_q, cache.keys, cache.values, out
    if head_dim % 8 == 0:
        begin_at(take, 16, *arrays)
    apart, counts = [a.stride for a in arrays], [a.count for a in arrays]
    if apart[1] != apart[2] or max(*apart, *counts) > BLOCKS:
        raise ValueError(
            f"{take.launcher}: rows of q, keys, values and out are {apart} elements apart: those of keys as those of values, and up to {BLOCKS}, as there are rows"
        )
    if tensor_maps and any(a.count > 1 and a.stride < a.width for a in arrays):
        raise ValueError(
            f"{take.launcher}: rows of q, keys and values are {apart[:3]} elements apart: they must not lie in one another"
        )
    if lse is None:
        return Rows(of_q, NULL)
    of_lse = take.write("lse", lse, "float32", out.shape[:-1])
    return Rows(of_q, of_lse.address)


def _launch(
    take: Operands, tile: Tile, is_paged: bool, q: Any, cache: Cache,
    out: Operand, lse: Any, causal: bool, window: int, scale: float | None,
    softcap: float, lengths: tuple[int, int], lists: Lists, stream: Any,
) -> None:  # fmt: skip
    rows = rows_of(take, q, cache, out, lse)
    *_, heads, head_dim = out.shape
    *_, kv_heads, _ = cache.keys.shape
    if not 0 < head_dim <= tile.d or (cache.arguments and head_dim % 16):
        raise ValueError(
            f"{take.launcher}: heads of {head_dim} elements, in tiles of {tile.d}; of FP8 16, 32, ..."
        )
    scale = 1 / math.sqrt(head_dim) if scale is None else scale
    if not scale > 0 or not softcap >= 0 or window < 0:
        raise ValueError(
            f"{take.launcher}: {scale=}, {softcap=}, {window=}: above 0, and at least 0"
        )
    blocks = grid(take, lists.items * heads)
    if not out.count or not blocks:
        return
    most = (1 << 30) - 1  # more keys than there are
    aligned = head_dim % 8 == 0
    instance(tile, is_paged, aligned, softcap > 0, cache.arguments)(
        rows.q.address, rows.q.stride, cache.keys.address,
        cache.values.address, cache.keys.stride, out.address, out.stride,
        rows.lse, heads, kv_heads, head_dim, (softcap or scale) * LOG2_E,
        2 * LOG2_E * scale / softcap if softcap else 0.0,
        min(window - 1, most) if window else most, 0 if causal else most,
        lists.items, *lengths, *lists[1:], cache.scales, grid=blocks,
        block=32 * tile.warps, shared=tile.shared(is_paged), stream=stream,
    )  # fmt: skip
