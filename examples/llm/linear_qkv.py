"""The product of many rows with W_qkv, RoPE, and the store into the cache in one
launch, by the kernel of linear_qkv.cu.

    linear_qkv(h, weights, positions, slots, table, keys, values, q)

bf16 travels as uint16, FP8 as uint8. No sum is split: a row's bits do not depend
on the others. They may differ from those of `linear` and `rope_and_store`, where
the product is rounded to bf16 before it is turned.
"""

from functools import cache
from typing import Any

import cudatut as ct

from linear import TILES, Tile, choose
from rows import cache_of, contiguous, ints, rows_of

SOURCE = "llm/linear_qkv.cu"


def instance(tile: Tile, *of_cache: str) -> str:
    """The kernel's name with its template arguments."""
    return f"linear_qkv<{', '.join(map(str, (*tile, *of_cache)))}>"


@cache
def _kernel(tile: Tile, *of_cache: str) -> Any:
    return ct.Kernel(SOURCE, instance(tile, *of_cache))


def linear_qkv(
    x: Any,
    weights: Any,
    positions: Any,
    slots: Any,
    table: Any,
    keys: Any,
    values: Any,
    q: Any,
    stream: Any = None,
    tile: Tile | None = None,
    scales: Any = None,
) -> None:
    """x @ weights.T; of it queries and keys turned to their positions; keys and
    values put into their slots of one layer's cache.

    x: bf16, [n, inputs], inputs a multiple of 8; n may be 0. weights: bf16,
    [(heads + 2 kv_heads) * head_dim, inputs], head_dim an even number.
    positions, slots: int32, [n]; where a slot is negative nothing is stored;
    positions are not checked, and each needs a row of the table; no two rows
    have the same slot. table: `rope_table`'s, [positions, head_dim / 2, 2].
    keys, values: bf16, [slots, kv_heads, head_dim], or FP8 with scales, as for
    `rope_and_store`. q: bf16, [n, heads * head_dim], rows may be strided. tile:
    instead of `choose`'s, of at most 64 results a thread. Raises ValueError.
    """
    first, (n, inputs) = contiguous(x, "x", "uint16", (None, None))
    if inputs % 8 or not inputs:
        raise ValueError(
            f"x has {inputs} inputs; they must be a multiple of 8, so that "
            "rows begin at multiples of 16 bytes"
        )
    stored, (outputs, _) = contiguous(
        weights, "weights", "uint16", (None, inputs)
    )
    of = cache_of(keys, scales)
    cached, shape = contiguous(keys, "keys", of.dtype, (None, None, None))
    others, _ = contiguous(values, "values", of.dtype, shape)
    _, kv_heads, head_dim = shape
    if head_dim % 2 or not head_dim or not kv_heads:
        raise ValueError(
            f"{kv_heads} KV heads of {head_dim} elements: these turn in pairs, so there must be an even number of them"
        )
    heads, rest = divmod(outputs - 2 * kv_heads * head_dim, head_dim)
    if rest or heads < 1:
        raise ValueError(
            f"{outputs} rows of weights cannot be {kv_heads} keys, {kv_heads} values and queries of {head_dim}"
        )
    turns, _ = contiguous(table, "table", "float32", (None, head_dim // 2, 2))
    to = rows_of(q, "q", "uint16", shape=(n, heads * head_dim))
    where = ints(positions, "positions", n), ints(slots, "slots", n)
    for name, address, bytes_ in (
        ("x", first, 16), ("weights", stored, 16), ("table", turns, 8),
        ("keys", cached, 4), ("values", others, 4), ("q", to.address, 4),
    ):  # fmt: skip
        if int(address) % bytes_:
            raise ValueError(
                f"{name} begins at no multiple of {bytes_} bytes: copy it into "
                "an array of its own"
            )
    if n > 1 and to.stride % 2:
        raise ValueError("rows of q have to begin at multiples of 4 bytes")
    if tile is not None and not tile.can_split:
        raise ValueError(f"{tile}: the epilogue takes 64 results a thread")
    if not n:
        return
    gpu = ct.device()
    limits = gpu.sm_count, gpu.shared_per_block_optin
    small = tuple(one for one in TILES if one.can_split)
    tile, _ = choose(
        n, outputs, inputs, *limits, tiles=(tile,) if tile else small
    )
    _kernel(tile, *of.arguments)(
        first, stored, *where, turns, to.address, to.stride, cached, others,
        n, inputs, heads, kv_heads, head_dim, of.scales,
        grid=ct.cdiv(n, tile.rows) * ct.cdiv(outputs, tile.columns),
        block=tile.threads, shared=tile.shared, stream=stream,
    )  # fmt: skip
