"""Attention over sequences of unequal lengths in blocks, from the host's arrays
and back: what a step of decoding gives, and what the end of a prompt.

    tables, pools, beside = scattered(lengths, 16, (2, 64), ct.rng(0), 0x7FC0)
    by_blocks = decode_step(q, pools, lengths, tables, 16)
    contiguous = decode_step(q, beside, lengths)

bfloat16 travels as uint16. q: [sequences, heads, d]. tables, lengths: as in
`batch.Batch`.
"""

from collections.abc import Sequence

import numpy as np

import cudatut as ct
from cudatut.book.llm.kernels.attention import decode, flash
from cudatut.book.numbers.bf16 import to_bf16


# --8<-- [start:ragged]
def scattered(
    lengths: Sequence[int],
    block_size: int,
    shape: tuple[int, int],
    rng: np.random.Generator,
    fill: int,
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Tables, and pools with random keys and values where `lengths` say so;
    `fill` stands in all other slots. And the same side by side."""
    needed = -(-np.asarray(lengths) // block_size)
    free = rng.permutation(needed.sum() + 3)
    pools = [
        np.full((len(free) * block_size, *shape), fill, "uint16") for _ in "kv"
    ]
    tables = np.full((len(lengths), needed.max()), -1, "int32")
    tables[np.arange(needed.max()) < needed[:, None]] = free[: needed.sum()]
    beside = np.full((2, len(lengths), max(lengths), *shape), fill, "uint16")
    for i, n in enumerate(lengths):
        j = np.arange(n)
        slots = tables[i, j // block_size] * block_size + j % block_size
        for pool, rows in zip(pools, beside):
            pool[slots] = rows[i, :n] = to_bf16(
                rng.standard_normal((n, *shape), dtype="float32")
            )
    return tables, pools, beside


def decode_step(
    q: np.ndarray,
    pools: Sequence[np.ndarray],
    lengths: Sequence[int],
    tables: np.ndarray | None = None,
    block_size: int = 0,
) -> np.ndarray:
    """By blocks, or without tables side by side."""
    s, heads, d = q.shape
    most = int(max(lengths))
    out = ct.empty(q.shape, "uint16")
    lse = ct.empty((s, heads), "float32")
    need = decode.sizes(s, heads, pools[0].shape[-2], d, most)
    partials = ct.empty(need.partials, "float32")
    tickets = ct.to_device(np.zeros(need.tickets, "uint32"))
    arrays = [ct.to_device(x) for x in (q, *pools)]
    lengths = ct.to_device(np.array(lengths, "int32"))
    work = out, lse, partials, tickets, most
    if tables is None:
        decode.contiguous(*arrays, lengths, *work)
    else:
        tables = ct.to_device(tables)
        decode.paged(*arrays, tables, lengths, block_size, *work)
    return out.get()


def prefill(
    q: np.ndarray,
    pools: Sequence[np.ndarray],
    lengths: Sequence[int],
    tables: np.ndarray,
    block_size: int,
) -> np.ndarray:
    """The last 5 tokens of each sequence, or all that it has."""
    counts = np.minimum(5, lengths)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype("int32")
    q = np.repeat(q, counts, axis=0)
    lengths = np.array(lengths, "int32")
    work = flash.order(starts, lengths, flash.tile_for(q.shape[2]))
    out = ct.empty(q.shape, "uint16")
    q, keys, values, starts, lengths, tables, work = map(
        ct.to_device, (q, *pools, starts, lengths, tables, work)
    )
    flash.paged(q, keys, values, out, starts, lengths, tables, block_size, work)
    return out.get()


# --8<-- [end:ragged]
