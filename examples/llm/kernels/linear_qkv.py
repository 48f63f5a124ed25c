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

from cudatut.book.llm.kernels.linear import TILES, Tile, choose
from cudatut.book.llm.kernels.rows import MOST, begin_at, grid
from cudatut.book.llm.kernels.turning import turning

SOURCE = "llm/kernels/linear_qkv.cu"


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
    positions, slots, table, keys, values, q, scales: see `turning`. tile:
    instead of `choose`'s, of at most 64 results a thread. Raises TypeError,
    ValueError.
    """
    take, two = ct.operands("linear_qkv"), (None, None)
    of_x = take.read("x", x, "uint16", two, most=MOST)
    n, inputs = of_x.shape
    if inputs % 8 or not inputs:
        raise ValueError(
            f"linear_qkv: x has {inputs} inputs; they must be a multiple of 8, "
            "so that rows begin at multiples of 16 bytes"
        )
    shape = None, inputs
    of_w = take.read("weights", weights, "uint16", shape, most=MOST)
    begin_at(take, 16, of_x, of_w)
    outputs, more = of_w.count, (positions, slots, table, keys, values, q)
    to = turning(take, n, outputs, *more, scales)
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
    tiles = ct.cdiv(n, tile.rows) * ct.cdiv(outputs, tile.columns)
    blocks = grid(take, tiles)
    _kernel(tile, *to.cache.arguments)(
        of_x.address, of_w.address, *to.arrays, n, inputs, to.heads,
        to.kv_heads, to.head_dim, to.cache.scales, grid=blocks,
        block=tile.threads, shared=tile.shared, stream=stream,
    )  # fmt: skip
