"""RoPE and the KV cache: launchers of the kernels of rope.cu. bfloat16 travels
as uint16, FP8 as uint8.
"""

from typing import Any

import numpy as np

import cudatut as ct

from cudatut.book.llm.kernels.rows import (
    BLOCKS_ASIDE,
    LONGEST,
    begin_at,
    cache_of,
    kernel,
)

SOURCE = "llm/kernels/rope.cu"


# --8<-- [start:table]
def rope_table(
    count: int,
    head_dim: int,
    theta: float,
    frequencies: np.ndarray | None = None,
) -> np.ndarray:
    """(cos, sin) of the angle by which pair i is turned at position p, p *
    theta^(-2i / head_dim): float32, [count, head_dim / 2, 2].

    Computed in float64: in float32 an angle of thousands of radians is off by
    a thousandth. frequencies: [head_dim / 2], instead of the powers of theta.
    """
    if frequencies is None:
        frequencies = theta ** (-np.arange(0, head_dim, 2) / head_dim)
    angles = np.multiply.outer(np.arange(count, dtype="float64"), frequencies)
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype("float32")


# --8<-- [end:table]


def rope_and_store(
    qkv: Any,
    positions: Any,
    slots: Any,
    table: Any,
    keys: Any,
    values: Any,
    q: Any = None,
    halves: bool = False,
    stream: Any = None,
    scales: Any = None,
) -> None:
    """Turn queries and keys to their positions, and put keys and values into
    their slots of one layer's cache.

    qkv: bf16, [n, (heads + 2 kv_heads) * head_dim]; rows may be strided.
    positions, slots: int32, [n]; where there is no such slot, as for -1,
    nothing is stored; positions are not checked, and each needs a row of the
    table. table: `rope_table`'s on the GPU. keys, values: bf16, [slots,
    kv_heads, head_dim], or FP8 with scales, float32, [2, kv_heads], by which
    what is stored is divided; no two tokens have the same slot. q: bf16, [n,
    heads * head_dim], rows may be strided; default: the queries are turned
    within qkv. halves: pairs are (x[i], x[i + head_dim / 2]), not (x[2i], x[2i
    + 1]). head_dim is a multiple of 8; all rows begin at multiples of 16 bytes.
    Raises TypeError, ValueError.
    """
    take = ct.operands("rope_and_store")
    how = take.write if q is None else take.read
    a = how("qkv", qkv, "uint16", (None, None), rows=1)
    n, width = a.shape
    cache = cache_of(take, keys, values, scales, 3, written=True)
    slot_count, kv_heads, head_dim = cache.keys.shape
    if head_dim % 8 or not head_dim:
        raise ValueError(
            f"rope_and_store: head_dim is {head_dim}, and should be a multiple of 8"
        )
    heads, rest = divmod(width - 2 * kv_heads * head_dim, head_dim)
    if rest or heads < 0:
        raise ValueError(
            f"rope_and_store: rows of {width} cannot hold {kv_heads} keys, {kv_heads} values and queries of {head_dim}"
        )
    to = a
    if q is not None:
        shape = n, heads * head_dim
        to = take.write("q", q, "uint16", shape, rows=1)
    shape = None, head_dim // 2, 2
    turns = take.read("table", table, "float32", shape)
    begin_at(take, 16, a, to, cache.keys, cache.values, turns)
    where = [
        take.read(name, array, "int32", (n,)).address
        for name, array in (("positions", positions), ("slots", slots))
    ]
    pieces = width // 8
    if not n or not pieces:
        return
    flag = str(halves).lower()
    run = kernel(SOURCE, "rope_and_store", head_dim, flag, *cache.arguments)
    run(
        a.address, a.stride, to.address, to.stride, cache.keys.address,
        cache.values.address, slot_count, *where, turns.address, heads,
        kv_heads, cache.scales,
        grid=n, block=min(1024, ct.cdiv(pieces, 32) * 32), stream=stream,
    )  # fmt: skip


def copy_blocks(
    keys: Any, values: Any, copies: Any, block_size: int, stream: Any = None
) -> None:
    """Copy blocks of block_size slots: those of `copies`, int32, [c, 2] (from,
    to), in this order; a pair with a number that is no block's does nothing, be
    it negative or too large.

    keys, values: bf16 or FP8, [slots, kv_heads, head_dim], or [layers, slots,
    ...]: of all layers. A block is a multiple of 16 bytes. Raises TypeError,
    ValueError.
    """
    take = ct.operands("copy_blocks")
    first = take.write("keys", keys, ("uint16", "uint8"))
    shape = first.shape
    second = take.write("values", values, first.dtype, shape)
    begin_at(take, 16, first, second)
    pairs = take.read("copies", copies, "int32", (None, 2), most=LONGEST)
    if len(shape) not in (3, 4) or block_size < 1 or shape[-3] % block_size:
        raise ValueError(
            f"copy_blocks: {list(shape)} does not consist of blocks of {block_size} slots, [slots, kv_heads, head_dim] or that for each layer"
        )
    layers = shape[0] if len(shape) == 4 else 1
    *_, slots, kv_heads, head_dim = shape
    elements, at_once = block_size * kv_heads * head_dim, 16 // first.size
    vectors = elements // at_once
    if elements % at_once or vectors > LONGEST or layers > BLOCKS_ASIDE:
        raise ValueError(
            f"copy_blocks: a block of {elements} elements in each of {layers} layers: {at_once} are copied at a time, up to {LONGEST} times, in up to {BLOCKS_ASIDE} layers"
        )
    blocks = slots // block_size
    if not pairs.count or not blocks or not layers or not vectors:
        return
    run = kernel(SOURCE, "copy_blocks")
    run(
        first.address, second.address, blocks * vectors, vectors, blocks,
        pairs.address, pairs.count,
        grid=(ct.cdiv(vectors, 128), layers, 2), block=128, stream=stream,
    )  # fmt: skip
