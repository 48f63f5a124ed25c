"""What a product of W_qkv does with its results, RoPE and the store into the
cache, as `norm_qkv` and `linear_qkv` are told about it.
"""

from typing import Any, NamedTuple

from rows import Cache, cache_of, contiguous, ints, rows_of


class Turning(NamedTuple):
    """arrays: arguments of the kernel, from positions to the values. heads,
    kv_heads, head_dim: numbers.
    """

    arrays: tuple[Any, ...]
    heads: int
    kv_heads: int
    head_dim: int
    cache: Cache


def aligned(name: str, address: Any, bytes: int) -> None:
    """Raises ValueError unless an array begins at a multiple of so many."""
    if int(address) % bytes:
        raise ValueError(
            f"{name} begins at no multiple of {bytes} bytes: copy it into an "
            "array of its own"
        )


def turning(
    n: int,
    outputs: int,
    positions: Any,
    slots: Any,
    table: Any,
    keys: Any,
    values: Any,
    q: Any,
    scales: Any = None,
) -> Turning:
    """For n rows of so many results: heads queries, kv_heads keys and values.

    positions, slots: int32, [n]; where a slot is negative nothing is stored;
    positions are not checked, and each needs a row of the table; no two rows
    have the same slot. table: `rope_table`'s, [positions, head_dim / 2, 2].
    keys, values: bf16, [slots, kv_heads, head_dim], or FP8 with scales, as for
    `rope_and_store`. q: bf16, [n, heads * head_dim], rows may be strided.
    Raises ValueError.
    """
    of = cache_of(keys, scales)
    stored, shape = contiguous(keys, "keys", of.dtype, (None, None, None))
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
    for name, address, bytes in (
        ("q", to.address, 4), ("keys", stored, 4), ("values", others, 4),
        ("table", turns, 8),
    ):  # fmt: skip
        aligned(name, address, bytes)
    if n > 1 and to.stride % 2:
        raise ValueError("rows of q have to begin at multiples of 4 bytes")
    arrays = *where, turns, to.address, to.stride, stored, others
    return Turning(arrays, heads, kv_heads, head_dim, of)
