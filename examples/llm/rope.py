"""RoPE and the KV cache: launchers of the kernels of rope.cu. bfloat16 travels
as uint16, FP8 as uint8.
"""

from typing import Any

import numpy as np

import cudatut as ct

from rows import cache_of, contiguous, ints, kernel, rows_of

SOURCE = "llm/rope.cu"


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
    positions, slots: int32, [n]; where a slot is negative nothing is stored;
    positions are not checked, and each needs a row of the table. table:
    `rope_table`'s on the GPU. keys, values: bf16, [slots, kv_heads, head_dim],
    or FP8 with scales, float32, [2, kv_heads], by which what is stored is
    divided; no two tokens have the same slot. q: bf16, [n, heads * head_dim], rows may
    be strided; default: the queries are turned within qkv. halves: pairs are
    (x[i], x[i + head_dim / 2]), not (x[2i], x[2i + 1]). head_dim is a multiple
    of 8. Raises ValueError.
    """
    a = rows_of(qkv, "qkv", "uint16")
    n, width = a.rows, a.width
    of = cache_of(keys, scales)
    cache, shape = contiguous(keys, "keys", of.dtype, (None, None, None))
    others, _ = contiguous(values, "values", of.dtype, shape)
    _, kv_heads, head_dim = shape
    if head_dim % 8 or not head_dim:
        raise ValueError(
            f"head_dim is {head_dim}, and should be a multiple of 8"
        )
    heads, rest = divmod(width - 2 * kv_heads * head_dim, head_dim)
    if rest or heads < 0:
        raise ValueError(
            f"rows of {width} cannot hold {kv_heads} keys, {kv_heads} values and queries of {head_dim}"
        )
    turns, _ = contiguous(table, "table", "float32", (None, head_dim // 2, 2))
    to = (
        a
        if q is None
        else rows_of(q, "q", "uint16", shape=(n, heads * head_dim))
    )
    if q is not None and to.overlaps(a) and to.address != a.address:
        raise ValueError("q must be the queries of qkv, or not lie in it")
    if to.address == a.address and to.stride != a.stride and n > 1:
        raise ValueError("q begins where qkv does, but its rows lie apart")
    for name, address, stride in (
        ("qkv", a.address, a.stride if n > 1 else 0),
        ("q", to.address, to.stride if n > 1 else 0),
        ("keys", cache, 0),
        ("values", others, 0),
        ("table", turns, 0),
    ):
        if int(address) % 16 or stride % 8:
            raise ValueError(
                f"rows of {name} have to begin at multiples of 16 B"
            )
    where = ints(positions, "positions", n), ints(slots, "slots", n)
    if not n:
        return
    pieces = width // 8
    flag = str(halves).lower()
    run = kernel(SOURCE, "rope_and_store", head_dim, flag, *of.arguments)
    run(
        a.address, a.stride, to.address, to.stride, cache, others, *where,
        turns, heads, kv_heads, of.scales,
        grid=n, block=min(1024, ct.cdiv(pieces, 32) * 32), stream=stream,
    )  # fmt: skip


def copy_blocks(
    keys: Any, values: Any, copies: Any, block_size: int, stream: Any = None
) -> None:
    """Copy blocks of block_size slots: those of `copies`, int32, [c, 2] (from,
    to), in this order; a pair with a negative number does nothing.

    keys, values: bf16 or FP8, [slots, kv_heads, head_dim], or [layers, slots,
    ...]: of all layers. Raises ValueError.
    """
    interface = keys.__cuda_array_interface__
    axes, dtype = len(interface["shape"]), np.dtype(interface["typestr"])
    kind = "uint8" if dtype == "uint8" else "uint16"
    first, shape = contiguous(keys, "keys", kind, (None,) * max(3, axes))
    second, _ = contiguous(values, "values", kind, shape)
    *layers, slots, kv_heads, head_dim = shape
    elements = block_size * kv_heads * head_dim
    if block_size < 1 or slots % block_size or len(layers) > 1:
        raise ValueError(
            f"{list(shape)} does not consist of blocks of {block_size}"
        )
    at_once = 16 // dtype.itemsize
    if elements % at_once or int(first) % 16 or int(second) % 16:
        raise ValueError(
            f"a block of {elements} elements: {at_once} are copied at a time"
        )
    pairs, (count, _) = contiguous(copies, "copies", "int32", (None, 2))
    vectors = elements // at_once
    if not count or not slots or 0 in (*layers, vectors):
        return
    run = kernel(SOURCE, "copy_blocks")
    grid = ct.cdiv(vectors, 128), *(layers or [1]), 2
    run(
        first, second, slots // block_size * vectors, vectors, pairs, count,
        grid=grid, block=128, stream=stream,
    )  # fmt: skip
