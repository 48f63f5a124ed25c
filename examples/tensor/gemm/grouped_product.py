"""Products of many sizes in one launch of grouped.cu: bf16 factors and results.

    run = prepare(x, weights, ends, out)   # uint16 arrays stand for bf16
    run()                                  # as often as wanted, ends as it is

Row i of x belongs to group g if ends[g - 1] <= i < ends[g]; weights is groups
x n x k, and out[i] = weights[g] x[i]. `ends` lies on the GPU, and nobody waits
for it: what writes it may run right before. A group may have no rows.

    run = prepare_list([(a, b, c), ...])   # C = A B^T, each of its own size
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct
from cudatut.book.measure import graphs
from cudatut.book.rivals import torch_rival
from cudatut.book.tensor.gemm.addresses import address

SOURCE, ROWS, DEPTH, CONSUMERS = "tensor/gemm/grouped.cu", 128, 64, 2
MOST_GROUPS = 384  # a thread of the block counts the tiles of each
BOX = 64 * 128  # bytes
LARGEST = 2**31 - 1 - 1024  # of an extent: tiles may reach past it
WANTS = {"most": LARGEST, "align": 16}  # of an array, as the TMA reads it


# --8<-- [start:tile]
class Tile(NamedTuple):
    """Columns of a tile, whose rows are 128; stages in shared memory."""

    columns: int
    stages: int

    @property
    def shared(self) -> int:
        """Bytes of shared memory: `Shared` in grouped.cu."""
        stage = (ROWS + self.columns) * DEPTH * 2 + 2 * 8
        consumer = 2 * BOX + 24 + 2 * 8
        first = 4 * (MOST_GROUPS + 1 + MOST_GROUPS // 32)
        both = self.stages * stage + CONSUMERS * consumer
        return both + 8 * ct.cdiv(first, 8)


TILES = (Tile(256, 4), Tile(128, 6), Tile(64, 8))


class Product(NamedTuple):
    """What `choose` has to know of a group: tile rows, not always whole, since
    only their mean may be known; and n and k.
    """

    tile_rows: float
    n: int
    k: int


def expected(rows: int, groups: int, n: int, k: int) -> list[Product]:
    """The groups of `rows` rows whose `ends` only the GPU knows: rows are
    spread evenly, and the last tile of a group is half full.
    """
    used = min(rows, groups)
    return [Product(max(1.0, rows / used / ROWS + 0.5), n, k)] * used


LINE, BYTE = 3.5, 1 / 1700  # cycles of an H100 for what follows


def cycles(tile: Tile, products: Sequence[Product], sms: int) -> float:
    """About how long they take beside other tiles, in cycles. All blocks of
    an H100 together fetch their lines of 128 bytes from the L2 cache, which
    takes longer than the products of a tile; and some bytes from memory.
    """
    tiles = work = size = 0.0
    for product in products:
        some = product.tile_rows * ct.cdiv(product.n, tile.columns)
        steps = ct.cdiv(product.k, DEPTH)
        tiles += some
        work += some * (steps * (ROWS + tile.columns) * LINE + 8 * tile.columns)
        size += 2 * product.n * product.k  # the weights, from memory once
        size += 2 * product.tile_rows * ROWS * (product.n + product.k)
    whole, rest = divmod(tiles, sms)
    # Of one tile; the last round has fewer of them, and so fewer bytes.
    alone, memory = work / tiles, size / tiles * BYTE
    time = whole * max(alone, sms * memory)
    return time + (max(alone, rest * memory) if rest else 0)


def choose(products: Sequence[Product], sms: int) -> Tile:
    """The tile that should be fastest; of equals, the narrowest: there are more
    of them, so that the last ones end at nearly the same time.
    """
    return min(
        TILES,
        key=lambda tile: (
            round(cycles(tile, products, sms), -2),
            tile.columns,
        ),
    )


# --8<-- [end:tile]


class Group(ctypes.Structure):
    """`Group` in groups.cuh."""

    _fields_ = [
        ("C", ctypes.c_uint64),
        *((name, ctypes.c_int) for name in ("m", "n", "k", "map", "row_b")),
    ]


class Work(ctypes.Structure):
    """`Work` in groups.cuh."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in (
            "maps", "groups", "ends", "taken",
        )),
        *((name, ctypes.c_int) for name in ("count", "rows", "order")),
    ]  # fmt: skip


class Options(NamedTuple):
    """Instead of what is chosen: the tile, and tiles below each other in the
    order. by_demand: whether a block takes the next tile when it is nearly done
    with one; else tiles are dealt in turn.
    """

    tile: Tile | None = None
    order: int | None = None
    by_demand: bool = True


DEFAULT = Options()


@cache
def kernel(tile: Tile):
    """The instance of grouped.cu; on all GPUs but Hopper a compile error."""
    name = f"grouped<{tile.columns},{tile.stages}>"
    return ct.Kernel(SOURCE, name, arch="sm_90a")


# --8<-- [start:prepare]
def prepare(
    x: Any, weights: Any, ends: Any, out: Any, options: Options = DEFAULT
) -> Callable[[], None]:
    """What computes out each time it is called, for the `ends` of that time.

    x: rows x k, weights: groups x n x k, out: rows x n, all uint16; ends:
    groups, int32, not falling, none beyond rows. Rows after the last end stay
    as they are. All are C-contiguous, and out shares no memory with the others.
    Two calls of one run must not overlap. Raises TypeError for types,
    ValueError for what else does not fit.
    """
    take = ct.operands("grouped_product")
    of_x = take.read("x", x, "uint16", (None, None), **WANTS)
    rows, k = of_x.shape
    of_w = take.read("weights", weights, "uint16", (None, None, k), **WANTS)
    groups, n, _ = of_w.shape
    take.read("ends", ends, "int32", (groups,))
    take.write("out", out, "uint16", (rows, n), **WANTS)
    _check(n, k, groups)
    if groups * n > LARGEST:
        raise ValueError(
            f"weights are {list(of_w.shape)}: groups x n goes up to {LARGEST}"
        )
    if not out.size or not groups:
        return lambda: None
    products = expected(rows, groups, n, k)
    tile = options.tile or choose(products, ct.device().sm_count)
    flat = weights.reshape(groups * n, k)  # B of group g begins in row g n
    table = [Group(address(out), 0, n, k, 0, g * n) for g in range(groups)]
    maps = [
        ct.tensor_map(x, (64, DEPTH), swizzle=128),
        ct.tensor_map(flat, (tile.columns, DEPTH), swizzle=128),
    ]
    return _launch(
        tile, maps, table, products, options, ends, rows,
        kept=(x, weights, out),
    )  # fmt: skip


# --8<-- [end:prepare]


def prepare_list(
    products: Sequence[tuple[Any, Any, Any]], options: Options = DEFAULT
) -> Callable[[], None]:
    """What computes C = A B^T for each (a, b, c): m x k, n x k and m x n, all
    uint16, of any sizes with n and k multiples of 8; C-contiguous, and no C
    shares memory with another array of the list. Raises TypeError for types,
    ValueError for what else does not fit. The longest are begun first.
    """
    take = ct.operands("prepare_list")
    for number, (a, b, c) in enumerate(products):
        of_a = take.read(f"A of {number}", a, "uint16", (None, None), **WANTS)
        m, k = of_a.shape
        of_b = take.read(f"B of {number}", b, "uint16", (None, k), **WANTS)
        n = of_b.shape[0]
        take.write(f"C of {number}", c, "uint16", (m, n), **WANTS)
    some = sorted(
        (one for one in products if one[2].size),
        key=lambda one: -one[0].shape[1],
    )
    for _, b, _ in some:
        _check(*b.shape, len(some))
    if not some:
        return lambda: None
    sizes = [Product(ct.cdiv(len(a), ROWS), *b.shape) for a, b, _ in some]
    tile = options.tile or choose(sizes, ct.device().sm_count)
    maps, table = [], []
    for number, (a, b, c) in enumerate(some):
        maps.append(ct.tensor_map(a, (64, DEPTH), swizzle=128))
        maps.append(ct.tensor_map(b, (tile.columns, DEPTH), swizzle=128))
        table.append(Group(address(c), len(a), *b.shape, 2 * number, 0))
    return _launch(tile, maps, table, sizes, options, kept=some)


def _check(n: int, k: int, groups: int) -> None:
    if n % 8 or k % 8 or not k:
        raise ValueError(
            f"n must be a multiple of 8, and k a positive one, as the TMA and "
            f"stores of 16 bytes need them; but n is {n}, k {k}"
        )
    if groups > MOST_GROUPS:
        raise ValueError(f"{groups} groups, but a launch takes {MOST_GROUPS}")


# --8<-- [start:launch]
def _launch(
    tile: Tile,
    maps: list[bytes],
    table: list[Group],
    products: list[Product],
    options: Options,
    ends: Any = None,
    rows: int = 0,
    kept: Any = None,
) -> Callable[[], None]:
    on_gpu = [
        ct.to_device(np.frombuffer(b"".join(map(bytes, some)), "uint8").copy())
        for some in (maps, table)
    ]
    taken = ct.to_device(np.zeros(1, "uint32"))
    sms = ct.device().sm_count
    order = max(1, round((sms * tile.columns / ROWS) ** 0.5))
    work = Work(
        *map(address, on_gpu), 0 if ends is None else address(ends),
        address(taken) if options.by_demand else 0, len(table), rows,
        options.order or order,
    )  # fmt: skip
    function = kernel(tile)
    most = sum(  # with any ends: a group's last tile may be all but empty
        ct.cdiv(one.n, tile.columns) * (-(-one.tile_rows // 1) + 1)
        for one in products
    )
    grid = min(sms, int(most))

    def run(stream: Any = None) -> None:
        function(
            work, grid=grid, block=128 * (1 + CONSUMERS), shared=tile.shared,
            stream=stream,
        )  # fmt: skip

    run.tile = tile
    run.kept = on_gpu, taken, ends, kept  # an address keeps nothing alive
    return run


# --8<-- [end:launch]


# --8<-- [start:rivals]
def loop(x: Any, weights: Any, ends: Sequence[int], out: Any, graph=False):
    """`loop_list` for the groups of `prepare`. ends: on the host, which has to
    know them.
    """
    groups = enumerate(zip([0, *ends], ends))
    some = [
        (x[first:end], weights[g], out[first:end])
        for g, (first, end) in groups
        if end > first
    ]
    return loop_list(some, graph)


def loop_list(products: Sequence[tuple[Any, Any, Any]], graph=False):
    """c = a b^T for one (a, b, c) after the other by torch.mm, and so cuBLAS,
    as a contestant of ct.bench; graph: all launches recorded in a CUDA graph.
    """

    def ready(torch, *tensors):
        three = list(zip(*[iter(tensors)] * 3))

        def call():
            for a, b, c in three:
                torch.mm(a, b.t(), out=c)

        if graph:
            return graphs.torch_recorded(torch, call)
        return call

    arrays = (array for product in products for array in product)
    return torch_rival.rival(ready, *arrays, vendor=True)


def torch_grouped(x: Any, weights: Any, ends: Any):
    """torch._grouped_mm: one launch of a CUTLASS kernel; `ends` on the GPU. Its
    result is a new array each time.
    """

    def ready(torch, x, w, ends):
        turned = w.transpose(1, 2)
        return lambda: torch._grouped_mm(x, turned, offs=ends)

    return torch_rival.rival(ready, x, weights, ends)


# --8<-- [end:rivals]
