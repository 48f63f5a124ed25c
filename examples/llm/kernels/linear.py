"""y = x @ W.T in bf16 for any number of rows of x, by the kernels of linear.cu and
linear_split.cu.

    linear(x, weights, out)             # out, bf16 or fp32, is overwritten
    linear(x, weights, out, add=True)   # out, fp32, is the residual stream
    linear(x, interleaved, out, swiglu=True)  # out, bf16: silu(gate) * up
    linear(x, weights, out, fast=True)  # sums may be split, from sm_90 on

bf16 travels as uint16. The same x and W give a row of the result the same bits
in every launch, whatever rows are beside it and whatever tile is chosen: no sum
is split. Where it is, because `split` or `fast` ask for it, the bits are those of
that split: the same whatever rows are beside it and whatever the tile, but
`fast` chooses the split by the number of rows, and by the GPU.
"""

from functools import cache
from typing import Any, NamedTuple

import cudatut as ct

from cudatut.book.llm.kernels.rows import CTYPES, FLOATS, MOST, begin_at, grid

SOURCE, SPLIT_SOURCE = "llm/kernels/linear.cu", "llm/kernels/linear_split.cu"
SPLITS = tuple(range(1, 9))  # a cluster has at most 8 blocks


# --8<-- [start:tiles]
class Tile(NamedTuple):
    """Rows and columns of y that a block computes, the depth of a slab, rows
    and columns of a warp, and slabs in shared memory.
    """

    rows: int
    columns: int
    depth: int
    warp_rows: int
    warp_columns: int
    stages: int

    @property
    def threads(self) -> int:
        warps = self.rows // self.warp_rows * self.columns // self.warp_columns
        return 32 * warps

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return self.stages * (self.rows + self.columns) * self.depth * 2

    @property
    def can_split(self) -> bool:
        """Whether linear_split.cu has registers for its exchange."""
        return self.rows * self.columns // self.threads <= 64


# Large tiles multiply the most per element that they copy, small ones are more
# blocks. Those of 8 stages are for blocks that have an SM almost to themselves.
TILES = (
    Tile(128, 256, 64, 64, 64, 4),
    Tile(128, 128, 64, 64, 64, 3),
    Tile(64, 128, 64, 32, 64, 3),
    Tile(64, 128, 64, 32, 64, 4),
    Tile(64, 64, 64, 32, 32, 4),
    Tile(64, 64, 64, 32, 32, 8),
    Tile(32, 64, 64, 16, 32, 4),
    Tile(32, 64, 64, 16, 32, 8),
    Tile(16, 64, 64, 16, 16, 4),
    Tile(16, 64, 64, 16, 16, 8),
    Tile(16, 32, 64, 16, 16, 4),
    Tile(16, 32, 64, 16, 16, 8),
)

# Which of them `choose` tries: each kind is another kernel to compile.
FAST_SPLITS = 1, 2, 3, 4, 6, 8

# What takes how long on an H100, in us. Fitted to 170 measured times of the
# products of a small model in graphs, 16 to 2304 rows: to about 15 %. What
# `choose` takes with them was at most 1.19 times as slow as the fastest one.
LAUNCH = 0.27
ARRIVAL = 1.0  # from asking for a slab to having it: weights, from far away
SLAB = 0.15  # a slab's steps in a block that has all it needs
BYTES = 83e3  # per us, that an SM copies
FLOPS, OF_WARP = 4.7e6, 0.78e6  # per us, of an SM, and of one warp at most
BESIDE = 0.1  # of the shorter of the two, copies or products, is not hidden
RESULTS = 5400  # per us, that an SM stores, or exchanges
EXCHANGE = 1.2  # of the sums of a cluster


def expected(
    tile: Tile, split: int, n: int, outputs: int, inputs: int, sms: int
) -> float:
    """us that the product takes, about; to compare tiles and splits.

    A block waits until slabs arrive, works on one after the other, and stores.
    A slab takes as long as the longest of three: copies on their way, what its
    own warps need, what blocks of an SM share. Blocks that find no room come a
    round later.
    """
    tiles = ct.cdiv(n, tile.rows) * ct.cdiv(outputs, tile.columns)
    on_sm = ct.cdiv(tiles * split, sms)
    rounds = ct.cdiv(on_sm, (227 << 10) // (tile.shared + 1024))
    slabs = ct.cdiv(ct.cdiv(inputs, tile.depth), split)
    results = tile.rows * tile.columns
    flops = 2 * results * tile.depth
    both = tile.shared / tile.stages / BYTES, flops / FLOPS
    shared = max(both) + BESIDE * min(both)
    own = max(SLAB, flops / (OF_WARP * tile.threads / 32))
    slab = max(own, on_sm / rounds * shared)
    ahead = min(slabs, tile.stages - 1)  # asked for at once
    waits = (slabs - ahead) * max(ARRIVAL / ahead, slab)
    block = ARRIVAL + ahead * slab + waits
    time = LAUNCH + rounds * block + on_sm * results / RESULTS
    return time + (EXCHANGE if split > 1 else 0)


@cache
def choose(
    n: int,
    outputs: int,
    inputs: int,
    sms: int,
    shared: int,
    splits: tuple[int, ...] = (1,),
    tiles: tuple[Tile, ...] = TILES,
) -> tuple[Tile, int]:
    """Of `tiles` that fit into `shared` bytes, and of `splits`, those that
    `expected` takes for the fastest on `sms` SMs.
    """
    plans = [
        (tile, split)
        for tile in tiles
        for split in splits
        if tile.shared <= shared and (split == 1 or tile.can_split)
    ]
    shape = n, outputs, inputs, sms
    return min(plans, key=lambda plan: expected(*plan, *shape))


# --8<-- [end:tiles]


def instance(
    tile: Tile, dtype: str, add: bool, swiglu: bool = False, split: int = 1
) -> str:
    """The kernel's name with its template arguments."""
    arguments = *tile, CTYPES[dtype], str(add).lower()
    if swiglu:
        arguments += ("true",)
    if split > 1:
        arguments = split, *arguments
    name = "linear_split" if split > 1 else "linear"
    return f"{name}<{', '.join(map(str, arguments))}>"


def source(split: int) -> str:
    """Where the kernel for this split is."""
    return SPLIT_SOURCE if split > 1 else SOURCE


@cache
def _kernel(tile: Tile, dtype: str, add: bool, swiglu: bool, split: int) -> Any:
    return ct.Kernel(source(split), instance(tile, dtype, add, swiglu, split))


def linear(
    x: Any,
    weights: Any,
    out: Any,
    add: bool = False,
    stream: Any = None,
    tile: Tile | None = None,
    swiglu: bool = False,
    split: int | None = None,
    fast: bool = False,
) -> None:
    """out = x @ weights.T, or out += x @ weights.T with `add`.

    x: bf16 (uint16), [n, inputs]; weights: bf16, [outputs, inputs]; out: [n,
    outputs], bf16 or float32, float32 with `add`; n may be 0. All are
    contiguous. inputs: a multiple of 8.

    tile: instead of `choose`'s. split: over how many blocks the depth of a tile
    is split, at most 8; more than 1 needs sm_90 and a small tile (`can_split`).
    Bits of the result depend on it (and, if it is more than 1, on the tile's
    depth), on nothing else of the tile and on no other row. Default: 1. fast:
    `choose` splits where that is faster: then bits depend on what it chooses by
    n, the shape of weights and the GPU.

    swiglu: out, bf16, [n, outputs / 2], is silu(gate) * up, where the rows of
    weights are in the order of `fused.interleave`; the products stay fp32 until
    then. Raises TypeError, ValueError.
    """
    take, two = ct.operands("linear"), (None, None)
    of_x = take.read("x", x, "uint16", two, most=MOST)
    n, inputs = of_x.shape
    if inputs % 8 or not inputs:
        raise ValueError(
            f"linear: x has {inputs} inputs; they must be a multiple of 8, so "
            "that rows begin at multiples of 16 bytes"
        )
    shape = None, inputs
    of_w = take.read("weights", weights, "uint16", shape, most=MOST)
    outputs = of_w.count
    if swiglu and (add or outputs % 16):
        raise ValueError(
            f"linear: {outputs} outputs, {add=}: SwiGLU takes interleaved gates "
            "and ups, a multiple of 16, and adds to nothing"
        )
    kinds = "float32" if add else "uint16" if swiglu else FLOATS
    shape = n, outputs // 2 if swiglu else outputs
    to = take.write("out", out, kinds, shape)
    begin_at(take, 16, of_x, of_w)
    begin_at(take, 8, to)
    splits = _splits(split, fast, tile)
    if not n or not outputs:
        return
    gpu = ct.device()
    limits = gpu.sm_count, gpu.shared_per_block_optin
    tile, split = choose(
        n, outputs, inputs, *limits, splits, (tile,) if tile else TILES
    )
    tiles = ct.cdiv(n, tile.rows) * ct.cdiv(outputs, tile.columns)
    blocks = grid(take, tiles * split)
    _kernel(tile, to.dtype, add, swiglu, split)(
        x, weights, out, n, outputs, inputs,
        grid=blocks, block=tile.threads, shared=tile.shared, stream=stream,
    )  # fmt: skip


def _splits(
    split: int | None, fast: bool, tile: Tile | None
) -> tuple[int, ...]:
    """Those that this GPU and this tile allow. Raises ValueError."""
    clusters = ct.device().compute_capability >= (9, 0)
    can = clusters and (tile is None or tile.can_split)
    if split is None:
        return FAST_SPLITS if fast and can else (1,)
    if split not in SPLITS:
        raise ValueError(
            f"{split=}: a cluster has {SPLITS[0]} to {SPLITS[-1]} blocks"
        )
    if split > 1 and not can:
        raise ValueError(
            f"{split=}: it takes clusters, which GPUs have from compute "
            "capability 9.0 on, and a tile of at most 64 results a thread"
        )
    return (split,)
