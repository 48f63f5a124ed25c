"""C = alpha op(A) op(B) + beta C by final.cu: bf16 factors, any sizes.

    run = prepare(a, b, c)               # uint16 arrays stand for bf16
    run()                                # as often as wanted
    prepare(a, b, c, transpose_b=True)   # B as it lies: n x k

C is bf16 (uint16) or float32. What the TMA cannot read, rows that do not begin
at multiples of 16 bytes, each run first copies into rows that do.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct

SOURCE, ROWS, DEPTH, CONSUMERS = "tensor/final.cu", 128, 64, 2
TYPES = {"uint16": "__nv_bfloat16", "float32": "float"}
BOX = 64 * 128  # bytes


# --8<-- [start:tile]
class Tile(NamedTuple):
    """Columns of a tile, whose rows are 128; stages in shared memory; blocks of
    a cluster; boxes through which a consumer stores.
    """

    columns: int
    stages: int
    cluster: int
    buffers: int

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        stage = (ROWS + self.columns) * DEPTH * 2 + 2 * 8  # and two barriers
        return self.stages * stage + CONSUMERS * self.buffers * BOX


TILES = (
    Tile(256, 4, 2, 2),
    Tile(256, 4, 1, 2),
    Tile(192, 4, 1, 3),
    Tile(128, 6, 2, 2),
    Tile(128, 6, 1, 2),
    Tile(64, 8, 1, 1),
)
# --8<-- [end:tile]


class _Work(ctypes.Structure):
    """`Work` in final.cu."""

    _fields_ = [
        *((name, ctypes.c_int) for name in (
            "m", "n", "ldc", "group", "steps", "whole", "share", "boxes",
        )),
        ("alpha", ctypes.c_float),
        ("beta", ctypes.c_float),
        *((name, ctypes.c_uint64) for name in ("C", "parts", "flags")),
    ]  # fmt: skip


@cache
def kernel(tile: Tile, transpose_a: bool, transpose_b: bool, dtype: str):
    """The instance of final.cu; on all GPUs but Hopper a compile error."""
    flags = (str(flag).lower() for flag in (transpose_a, transpose_b))
    numbers = ",".join(map(str, tile))
    name = f"gemm<{numbers},{','.join(flags)},{TYPES[dtype]}>"
    return ct.Kernel(SOURCE, name, arch="sm_90a")


@cache
def _pad_rows():
    return ct.Kernel("tensor/pad.cu", "pad_rows")


# --8<-- [start:choose]
class Plan(NamedTuple):
    """A tile; how many workers, blocks or clusters, share the work; how many
    tiles are computed whole; and the steps of a worker's share of the rest.
    """

    tile: Tile
    workers: int
    whole: int
    share: int


MOST_PARTS, LEAST_SHARE = 8, 4  # parts of a tile; steps of a share


def plans(m: int, n: int, k: int, tile: Tile, sms: int) -> list[Plan]:
    """The two ways to give a product to the blocks of a GPU: whole tiles only,
    and, where these do not come out even, the last of them in equal shares.
    """
    rows, columns = ct.cdiv(m, ROWS * tile.cluster), ct.cdiv(n, tile.columns)
    tiles, steps, most = rows * columns, ct.cdiv(k, DEPTH), sms // tile.cluster
    found = [Plan(tile, min(tiles, most), tiles, 0)]
    if tiles % most:
        # So many rounds of whole tiles that at least one tile for each is left.
        whole = max(tiles // most - 1, 0) * most
        left = (tiles - whole) * steps
        workers = min(most, (tiles - whole) * MOST_PARTS, left // LEAST_SHARE)
        if workers > 0 and (workers == most or not whole):
            found.append(Plan(tile, workers, whole, ct.cdiv(left, workers)))
    return found


def cycles(plan: Plan, k: int) -> float:
    """About how long a product takes, to compare plans."""
    tile, steps = plan.tile, ct.cdiv(k, DEPTH)
    # 4096 FLOP in a cycle; small tiles wait for their factors.
    efficiency = {256: 0.88, 192: 0.84, 128: 0.78, 64: 0.55}[tile.columns]
    step, store = 4 * tile.columns / efficiency, 6 * tile.columns
    time = 2500 + ct.cdiv(plan.whole, plan.workers) * (steps * step + store)
    if plan.share:
        others = ct.cdiv(steps, plan.share)
        time += plan.share * step + store + (1 + others) * 10 * tile.columns
    return time


def choose(m: int, n: int, k: int, sms: int) -> Plan:
    """The plan that should be fastest."""
    options = [plan for tile in TILES for plan in plans(m, n, k, tile, sms)]
    return min(options, key=lambda plan: cycles(plan, k))


# --8<-- [end:choose]


def prepare(
    a: Any,
    b: Any,
    c: Any,
    alpha: float = 1.0,
    beta: float = 0.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    plan: Plan | None = None,
    group: int | None = None,
    stream: Any = None,
) -> Callable[[], None]:
    """What computes the product each time it is called.

    a, b: uint16, op(A) m x k, op(B) k x n; c: m x n, uint16 or float32; all
    C-contiguous. plan, group (tiles below each other in the order): instead of
    what is chosen. Two calls of one run must not overlap. Raises ValueError for
    shapes that do not fit.
    """
    (m, k), (k_b, n) = (
        shape[::-1] if turned else shape
        for shape, turned in ((a.shape, transpose_a), (b.shape, transpose_b))
    )
    if k != k_b or c.shape != (m, n):
        raise ValueError(
            f"A, B and C must be m x k, k x n and m x n, but op(A) is {(m, k)}"
            f", op(B) {(k_b, n)}, C {c.shape}"
        )
    if not c.size:
        return lambda: None
    if not k or not alpha:  # A and B do not count: zeros of the least size
        a = b = ct.to_device(np.zeros((8, 8), "uint16"))
        alpha, k = 1.0, 8
    sms, dtype = ct.device().sm_count, str(c.dtype)
    plan = plan or choose(m, n, k, sms)
    tile = plan.tile
    boxes = (
        (64, 64) if transpose_a else (ROWS, 64),
        (tile.columns // tile.cluster, 64) if transpose_b else (64, 64),
    )
    factors = [_aligned(array, stream) for array in (a, b)]
    maps = [
        ct.tensor_map(array, box, swizzle=128)
        for (array, _), box in zip(factors, boxes, strict=True)
    ]
    mapped = dtype == "uint16" and n % 8 == 0 and _address(c) % 16 == 0
    maps.append(ct.tensor_map(c, (64, 64), swizzle=128) if mapped else maps[0])
    # For parts of tiles: one for each consumer of each block.
    parts = plan.workers * tile.cluster * CONSUMERS if plan.share else 0
    space = ct.empty(max(parts, 1) * 64 * tile.columns, "float32")
    flags = ct.to_device(np.zeros(max(parts, 1), "uint32"))
    work = _Work(
        m, n, n, group or 16 // tile.cluster, ct.cdiv(k, DEPTH), plan.whole,
        plan.share, mapped, alpha, beta, _address(c), _address(space),
        _address(flags),
    )  # fmt: skip
    function = kernel(tile, transpose_a, transpose_b, dtype)
    calls = [copy for _, copy in factors if copy]

    def run() -> None:
        for copy in calls:
            copy()
        function(
            *maps, work, grid=plan.workers * tile.cluster,
            block=128 * (1 + CONSUMERS), shared=tile.shared, stream=stream,
        )  # fmt: skip

    run.out, run.plan = c, plan
    run.kept = a, b, factors, space, flags  # an address keeps nothing alive
    return run


def _address(array: Any) -> int:
    return array.__cuda_array_interface__["data"][0]


def _aligned(array: Any, stream: Any) -> tuple[Any, Callable | None]:
    """What a tensor map can be made of, and the call that copies there."""
    rows, columns = array.shape
    if columns % 8 == 0 and _address(array) % 16 == 0:
        return array, None
    wide = ct.empty((rows, 8 * ct.cdiv(columns, 8)), "uint16")
    pieces = rows * wide.shape[1] // 8
    blocks = min(ct.cdiv(pieces, 256), 16 * ct.device().sm_count)
    pad = _pad_rows()
    # The kernel takes the 16 bytes of a piece as four words.
    to = np.uint64(_address(wide))
    return wide, lambda: pad(
        array, to, rows, columns, columns, wide.shape[1], grid=blocks,
        block=256, stream=stream,
    )  # fmt: skip
