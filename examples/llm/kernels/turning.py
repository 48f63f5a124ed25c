"""What a product of W_qkv does with its results, RoPE and the store into the
cache, as `norm_qkv` and `linear_qkv` are told about it.
"""

from typing import Any, NamedTuple

from cudatut.gpu.operands import Operands

from cudatut.book.llm.kernels.rows import Cache, begin_at, cache_of


class Turning(NamedTuple):
    """arrays: arguments of the kernel, from positions to the values, and of how
    many slots these are. heads, kv_heads, head_dim: numbers.
    """

    arrays: tuple[Any, ...]
    heads: int
    kv_heads: int
    head_dim: int
    cache: Cache


def turning(
    take: Operands,
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

    positions, slots: int32, [n]; where there is no such slot, as for -1,
    nothing is stored; positions are not checked, and each needs a row of the
    table; no two rows have the same slot. table: `rope_table`'s, [positions,
    head_dim / 2, 2]. keys, values: bf16, [slots, kv_heads, head_dim], or FP8
    with scales, as for `rope_and_store`. q: bf16, [n, heads * head_dim], rows
    may be strided. Raises TypeError, ValueError.
    """
    cache = cache_of(take, keys, values, scales, 3, written=True)
    slot_count, kv_heads, head_dim = cache.keys.shape
    if head_dim % 2 or not head_dim or not kv_heads:
        raise ValueError(
            f"{take.launcher}: {kv_heads} KV heads of {head_dim} elements: these turn in pairs, so there must be an even number of them"
        )
    heads, rest = divmod(outputs - 2 * kv_heads * head_dim, head_dim)
    if rest or heads < 1:
        raise ValueError(
            f"{take.launcher}: {outputs} rows of weights cannot be {kv_heads} keys, {kv_heads} values and queries of {head_dim}"
        )
    shape = n, heads * head_dim
    to = take.write("q", q, "uint16", shape, rows=1)
    shape = None, head_dim // 2, 2
    turns = take.read("table", table, "float32", shape)
    # Pairs are stored, and turned, at a time.
    begin_at(take, 4, to, cache.keys, cache.values)
    begin_at(take, 8, turns)
    where = [
        take.read(name, array, "int32", (n,)).address
        for name, array in (("positions", positions), ("slots", slots))
    ]
    arrays = (
        *where, turns.address, to.address, to.stride, cache.keys.address,
        cache.values.address, slot_count,
    )  # fmt: skip
    return Turning(arrays, heads, kv_heads, head_dim, cache)
