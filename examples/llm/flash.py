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
import rows

SOURCE = "llm/flash.cu"
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

    Raises ValueError for shapes and numbers that do not fit, TypeError for
    elements of another type.
    """
    if len(out.shape) != 4 or len(keys.shape) != 4:
        raise ValueError(
            f"out of shape {out.shape}, keys of {keys.shape}: [s, tokens, heads, head_dim]"
        )
    sequences, q_len = out.shape[:2]
    k_len, _, head_dim = keys.shape[1:]
    if keys.shape[0] != sequences or max(q_len, k_len) > LONGEST:
        raise ValueError(
            f"{sequences} sequences of {q_len} queries cannot have keys of shape {keys.shape}"
        )
    tile = tile or tile_for(head_dim)
    tiles = ct.cdiv(q_len + (k_len - q_len) % tile.bm, tile.bm)
    _launch(
        tile, False, 2, q, keys, values, out, lse, causal, window, scale,
        softcap, tiles * sequences, q_len, k_len, rows.NULL, rows.NULL,
        rows.NULL, rows.NULL, 0, 1, stream, scales,
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
    `order` says for the same tile.
    """
    if len(out.shape) != 3 or len(keys.shape) != 3:
        raise ValueError(
            f"out of shape {out.shape}, keys of {keys.shape}: [n, heads, head_dim] and [slots, kv_heads, head_dim]"
        )
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
    if block_size < 1:
        raise ValueError(f"blocks of {block_size} tokens: 1 at least")
    _launch(
        tile or tile_for(keys.shape[2]), True, 1, q, keys, values, out, lse,
        causal, window, scale, softcap, items, 0, 0, of_work, of_starts,
        of_lengths, of_tables, width, block_size, stream, scales,
    )  # fmt: skip


def _launch(
    tile, is_paged, leading, q, keys, values, out, lse, causal, window, scale,
    softcap, items, q_len, k_len, work, starts, lengths, tables, width,
    block_size, stream, scales,
) -> None:  # fmt: skip
    *_, heads, head_dim = out.shape
    *_, kv_heads, key_dim = keys.shape
    if key_dim != head_dim or head_dim > tile.d:
        raise ValueError(
            f"queries of {head_dim} and keys of {key_dim} elements, in tiles of {tile.d}"
        )
    if kv_heads < 1 or heads % kv_heads or values.shape != keys.shape:
        raise ValueError(
            f"{heads} query heads cannot share keys of shape {keys.shape} and values of {values.shape}"
        )
    scale = 1 / math.sqrt(head_dim) if scale is None else scale
    if not scale > 0 or not softcap >= 0 or window < 0:
        raise ValueError(
            f"{scale=}, {softcap=}, {window=}: above 0, and at least 0"
        )
    of_q = rows.spaced(q, "q", leading, heads * head_dim)
    cache = rows.cache_of(keys, scales)
    size = np.dtype(cache.dtype).itemsize
    of_keys = rows.spaced(keys, "keys", leading, kv_heads * head_dim, size)
    of_values = rows.spaced(
        values, "values", leading, kv_heads * head_dim, size
    )
    of_out = rows.spaced(out, "out", leading, heads * head_dim)
    if of_q.count != of_out.count or of_keys.stride != of_values.stride:
        raise ValueError(
            f"{of_q.count} rows of q for {of_out.count} of out; rows of keys and values are {of_keys.stride} and {of_values.stride} elements apart"
        )
    if q.shape[:leading] != out.shape[:leading]:
        raise ValueError(f"q of shape {q.shape}, out of {out.shape}")
    aligned = head_dim % 8 == 0
    if size == 1 and head_dim % 16:
        raise ValueError(f"heads of {head_dim} elements: of FP8 16, 32, ...")
    if aligned and any(
        a.stride * bytes % 16 or int(a.address) % 16
        for a, bytes in zip(
            (of_q, of_keys, of_values, of_out), (2, size, size, 2)
        )
    ):
        raise ValueError(
            "rows of q, keys, values and out must begin at multiples of 16 bytes"
        )
    of_lse = rows.NULL
    if lse is not None:
        of_lse, _ = rows.contiguous(lse, "lse", "float32", out.shape[:-1])
    if items * heads >= 1 << 31:
        raise ValueError(f"{items} tiles of queries of {heads} heads: too many")
    if not of_out.count or not heads or not items or not head_dim:
        return
    most = (1 << 30) - 1  # more keys than there are
    instance(tile, is_paged, aligned, softcap > 0, cache.arguments)(
        of_q.address, of_q.stride, of_keys.address, of_values.address,
        of_keys.stride, of_out.address, of_out.stride,
        of_lse, heads, kv_heads, head_dim, (softcap or scale) * LOG2_E,
        2 * LOG2_E * scale / softcap if softcap else 0.0,
        min(window - 1, most) if window else most, 0 if causal else most,
        items, q_len, k_len, work, starts, lengths, tables, width, block_size,
        cache.scales, grid=items * heads, block=32 * tile.warps,
        shared=tile.shared(is_paged), stream=stream,
    )  # fmt: skip
