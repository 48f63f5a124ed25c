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
import flash
import rows
from flash import Tile

SOURCE = "llm/flash_parts.cu"
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
    overlap need their own. Raises ValueError, TypeError.
    """
    tile = tile or flash.tile_for(keys.shape[-1])
    if len(out.shape) != 3 or len(keys.shape) != 3:
        raise ValueError(
            f"out of shape {out.shape}, keys of {keys.shape}: [n, heads, head_dim] and [slots, kv_heads, head_dim]"
        )
    (_, heads, head_dim), (_, kv_heads, key_dim) = out.shape, keys.shape
    if key_dim != head_dim or head_dim > tile.d or head_dim % 16:
        raise ValueError(
            f"queries of {head_dim} and keys of {key_dim} elements, in tiles of {tile.d}: a multiple of 16"
        )
    if kv_heads < 1 or heads % kv_heads or values.shape != keys.shape:
        raise ValueError(
            f"{heads} query heads cannot share keys of shape {keys.shape} and values of {values.shape}"
        )
    if block_size < 1 or parts < 1:
        raise ValueError(f"{block_size=}, {parts=}: 1 at least")
    # As in flash.py, the arrays keep their names until the launch.
    of_lengths, (sequences,) = rows.contiguous(
        lengths, "lengths", "int32", (None,)
    )
    of_starts = rows.ints(starts, "starts", sequences + 1)
    of_tables, (_, width) = rows.contiguous(
        tables, "tables", "int32", (sequences, None)
    )
    of_work, (items, _) = rows.contiguous(work, "work", "int32", (None, 2))
    cache = rows.cache_of(keys, scales)
    size = 1 if cache.arguments else 2
    of_q = rows.spaced(q, "q", 1, heads * head_dim)
    of_keys = rows.spaced(keys, "keys", 1, kv_heads * head_dim, size)
    of_values = rows.spaced(values, "values", 1, kv_heads * head_dim, size)
    of_out = rows.spaced(out, "out", 1, heads * head_dim)
    if of_q.count != of_out.count or of_keys.stride != of_values.stride:
        raise ValueError(
            f"{of_q.count} rows of q for {of_out.count} of out; rows of keys and values are {of_keys.stride} and {of_values.stride} elements apart"
        )
    if any(
        a.stride * bytes % 16 or int(a.address) % 16
        for a, bytes in (
            (of_q, 2), (of_keys, size), (of_values, size), (of_out, 2),
        )
    ):  # fmt: skip
        raise ValueError(
            "rows of q, keys, values and out must begin at multiples of 16 bytes"
        )
    of_lse = rows.NULL
    if lse is not None:
        of_lse, _ = rows.contiguous(lse, "lse", "float32", out.shape[:2])
    of_partials, (there,) = rows.contiguous(
        partials, "partials", "float32", (None,)
    )
    blocks = items * heads * parts
    need = blocks * tile.bm * (tile.d + 2)
    if there < need:
        raise ValueError(f"partials has {there} elements, and needs {need}")
    pieces = items * heads * (tile.bm * tile.d // 4 // MERGE_THREADS)
    if max(blocks, pieces) >= 1 << 31:
        raise ValueError(f"{items} tiles of queries of {heads} heads: too many")
    if not of_out.count or not heads or not items:
        return
    scale = 1 / math.sqrt(head_dim) if scale is None else scale
    kernel, merge = instances(tile, cache.arguments)
    lists = of_work, of_starts, of_lengths
    kernel(
        of_q.address, of_q.stride, of_keys.address, of_values.address,
        of_keys.stride, of_out.address, of_out.stride, of_lse, heads, kv_heads,
        head_dim, scale * flash.LOG2_E, parts, *lists, of_tables, width,
        block_size, cache.scales, of_partials, grid=blocks,
        block=32 * tile.warps, shared=tile.shared(True), stream=stream,
    )  # fmt: skip
    merge(
        of_partials, of_out.address, of_out.stride, of_lse, heads, head_dim,
        parts, items, *lists, grid=pieces, block=MERGE_THREADS, stream=stream,
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
