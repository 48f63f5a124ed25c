"""Attention of few query tokens over many keys, by flash_parts.cu: where tiles
of queries are too few for the GPU, the keys of each are dealt out to several
thread blocks, and a second kernel adds up what they found.

    partials = ct.empty(flash_parts.room(flash.tile_for(head_dim)), "float32")
    flash_parts.few_or_many(q, keys, values, out, starts, lengths, tables,
                            block_size, work, partials)

The bits of a result depend on the number of parts, and so on what else is in
the batch. Nothing is allocated, and what is launched depends on shapes and the
number of parts alone: a CUDA graph may hold it.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import cudatut as ct
from cudatut.book.llm.kernels.attention import flash
from cudatut.book.llm.kernels.attention.flash import Tile

from cudatut.book.llm.kernels.rows import begin_at, cache_of, grid, workspace

SOURCE = "llm/kernels/attention/flash_parts.cu"
LEAST = 2  # tiles of keys of a part, as flash_parts.cu has it
SHORT = 8  # tiles of keys: of so many at least, they are dealt out
MERGE_THREADS = 128


# --8<-- [start:parts]
def parts(
    items: int, heads: int, longest: int, tile: Tile, sms: int | None = None
) -> int:
    """Parts of each item's keys with which no thread block has to wait for an
    SM; 1: leave them to flash.cu. items: of the work. longest: at least the
    keys of the longest sequence. sms: by default of this GPU.
    """
    sms = ct.device().sm_count if sms is None else sms
    tiles = ct.cdiv(longest, tile.bn)
    if not items or tiles < SHORT:
        return 1
    room = sms * tile.blocks // (items * heads)
    return max(1, min(room, ct.cdiv(tiles, LEAST)))


def room(tile: Tile, sms: int | None = None) -> int:
    """Elements of `partials`, float32, for launches with as many parts as
    `parts` says: of each row of a tile its sums and two numbers more.
    """
    sms = ct.device().sm_count if sms is None else sms
    return sms * tile.blocks * tile.bm * (tile.d + 2)


# --8<-- [end:parts]


@functools.cache
def instances(
    tile: Tile, cache: tuple[str, ...] = ()
) -> tuple[ct.Kernel, ct.Kernel]:
    """Both kernels. cache: as `rows.Cache.arguments`."""
    arguments = ",".join(map(str, (*tile, *cache)))
    merge = f"merge_parts<{tile.d},{tile.bm},{tile.bn}>"
    return (
        ct.Kernel(SOURCE, f"flash_parts<{arguments}>"),
        ct.Kernel(SOURCE, merge),
    )


def paged(
    q: Any, keys: Any, values: Any, out: Any, starts: Any, lengths: Any,
    tables: Any, block_size: int, work: Any, parts: int, partials: Any,
    lse: Any = None, scale: float | None = None, tile: Tile | None = None,
    stream: Any = None, scales: Any = None,
) -> None:  # fmt: skip
    """As `flash.paged`, causal; head_dim is a multiple of 16, and a sequence
    has at least as many keys as queries.

    parts: of each item's keys at most, 1 or more. partials: float32, at least
    items * heads * parts * tile.bm * (tile.d + 2) elements; launches that may
    overlap need their own. Raises TypeError, ValueError.
    """
    take = ct.operands("flash_parts.paged")
    to = take.write("out", out, "uint16", (None,) * 3, rows=1)
    cache = cache_of(take, keys, values, scales, 3, rows=1)
    rows = flash.rows_of(take, q, cache, to, lse)
    lists = flash.lists_of(take, starts, lengths, tables, block_size, work)
    (_, heads, head_dim), kv_heads = to.shape, cache.keys.shape[1]
    tile = tile or flash.tile_for(head_dim)
    if not 0 < head_dim <= tile.d or head_dim % 16:
        raise ValueError(
            f"flash_parts.paged: heads of {head_dim} elements, in tiles of {tile.d}: a multiple of 16"
        )
    scale = 1 / math.sqrt(head_dim) if scale is None else scale
    if parts < 1 or not scale > 0:
        raise ValueError(
            f"flash_parts.paged: {parts=}, {scale=}: 1 at least, and above 0"
        )
    blocks = grid(take, lists.items * heads * parts)
    pieces = tile.bm * tile.d // 4 // MERGE_THREADS
    pieces = grid(take, lists.items * heads * pieces)
    need = blocks * tile.bm * (tile.d + 2)
    sums = workspace(take, "partials", partials, "float32", need)
    begin_at(take, 16, sums)
    if not to.count or not blocks:
        return
    kernel, merge = instances(tile, cache.arguments)
    items, *of_items = lists[:4]
    kernel(
        rows.q.address, rows.q.stride, cache.keys.address,
        cache.values.address, cache.keys.stride, to.address, to.stride,
        rows.lse, heads, kv_heads, head_dim, scale * flash.LOG2_E, parts,
        *lists[1:], cache.scales, sums.address, grid=blocks,
        block=32 * tile.warps, shared=tile.shared(True), stream=stream,
    )  # fmt: skip
    merge(
        sums.address, to.address, to.stride, rows.lse, heads, head_dim, parts,
        items, *of_items, grid=pieces, block=MERGE_THREADS, stream=stream,
    )  # fmt: skip


# --8<-- [start:choose]
def few_or_many(
    q: Any, keys: Any, values: Any, out: Any, starts: Any, lengths: Any,
    tables: Any, block_size: int, work: Any, partials: Any, stream: Any = None,
    scales: Any = None, many: Callable[..., None] | None = None,
) -> None:  # fmt: skip
    """`paged` above where work of so few tiles would leave SMs idle, otherwise
    `many`, by default `flash.paged`. Shapes alone decide: keys are as many as
    the tables have room for. partials: as `room` says.
    """
    what = q, keys, values, out, starts, lengths, tables, block_size, work
    (items, _), (_, width) = work.shape, tables.shape
    tile = flash.tile_for(keys.shape[2])
    how = {"stream": stream, "scales": scales}
    count = parts(items, out.shape[1], width * block_size, tile)
    if count > 1:
        paged(*what, count, partials, **how)
    elif many:
        many(*what, stream=stream)
    else:
        flash.paged(*what, **how)


# --8<-- [end:choose]
