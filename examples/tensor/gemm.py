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
            "m", "n", "ldc", "group", "steps", "per_split", "splits", "boxes",
        )),
        ("alpha", ctypes.c_float),
        ("beta", ctypes.c_float),
        ("C", ctypes.c_uint64),
    ]  # fmt: skip


@cache
def kernel(tile: Tile, transpose_a: bool, transpose_b: bool, dtype: str):
    """The instance of final.cu; on all GPUs but Hopper a compile error."""
    flags = (str(flag).lower() for flag in (transpose_a, transpose_b))
    numbers = ",".join(map(str, tile))
    name = f"gemm<{numbers},{','.join(flags)},{TYPES[dtype]}>"
    return ct.Kernel(SOURCE, name, arch="sm_90a")


@cache
def _add_splits(dtype: str):
    return ct.Kernel("tensor/splits.cu", f"add_splits<{TYPES[dtype]}>")


@cache
def _pad_rows():
    return ct.Kernel("tensor/pad.cu", "pad_rows")


# --8<-- [start:choose]
def seconds(m: int, n: int, k: int, tile: Tile, splits: int, sms: int) -> float:
    """About how long a product takes, to compare tiles and splits."""
    steps = ct.cdiv(ct.cdiv(k, DEPTH), splits)
    rows = ct.cdiv(m, ROWS * tile.cluster)
    units = rows * ct.cdiv(n, tile.columns) * splits
    waves = ct.cdiv(units, sms // tile.cluster)
    # 4096 FLOP in a cycle; small tiles wait for their factors.
    cycles = (
        4
        * tile.columns
        / {256: 0.88, 192: 0.84, 128: 0.78, 64: 0.55}[tile.columns]
    )
    time = (waves * (steps * cycles + 1500) + 2500) / 1.6e9
    if splits > 1:
        time += 3e-6 + m * n * 4 * (splits + 1) / 2.5e12
    return time


def choose(m: int, n: int, k: int, sms: int) -> tuple[Tile, int]:
    """The tile, and into how many parts the depth is split."""
    steps = max(ct.cdiv(k, DEPTH), 1)
    options = [
        (tile, ct.cdiv(steps, ct.cdiv(steps, splits)))
        for tile in TILES
        for splits in (1, 2, 3, 4, 6, 8, 12, 16)
        if splits == 1 or splits * 4 <= steps
    ]
    return min(options, key=lambda option: seconds(m, n, k, *option, sms))


# --8<-- [end:choose]


def prepare(
    a: Any,
    b: Any,
    c: Any,
    alpha: float = 1.0,
    beta: float = 0.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    tile: Tile | None = None,
    splits: int | None = None,
    group: int | None = None,
    stream: Any = None,
) -> Callable[[], None]:
    """What computes the product each time it is called.

    a, b: uint16, op(A) m x k, op(B) k x n; c: m x n, uint16 or float32; all
    C-contiguous. tile, splits, group (tiles below each other in the order):
    instead of what is chosen. Raises ValueError for shapes that do not fit.
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
    sms = ct.device().sm_count
    depth = k if alpha else 0  # with alpha = 0, A and B do not count
    chosen = choose(m, n, max(depth, 1), sms)
    tile, splits = tile or chosen[0], splits or (1 if tile else chosen[1])
    steps = ct.cdiv(depth, DEPTH)
    per_split = max(ct.cdiv(steps, splits), 1)
    splits = max(ct.cdiv(steps, per_split), 1)
    calls, kept = [], [a, b, c]

    # The maps. Without depth there is nothing to map, and nobody reads one.
    maps = [bytes(128)] * 3
    if steps:
        boxes = (
            (64, 64) if transpose_a else (ROWS, 64),
            (tile.columns // tile.cluster, 64) if transpose_b else (64, 64),
        )
        for i, (array, box) in enumerate(zip((a, b), boxes)):
            whole, copy = _aligned(array, stream)
            maps[i] = ct.tensor_map(whole, box, swizzle=128)
            calls += [copy] if copy else []
            kept.append(whole)
    target, dtype = c, str(c.dtype)
    if splits > 1:
        target, dtype = ct.empty((splits, m, n), "float32"), "float32"
        kept.append(target)
    mapped = dtype == "uint16" and n % 8 == 0 and _address(c) % 16 == 0
    if mapped:
        maps[2] = ct.tensor_map(c, (64, 64), swizzle=128)

    shape = ct.cdiv(m, ROWS * tile.cluster), ct.cdiv(n, tile.columns)
    clusters = min(shape[0] * shape[1] * splits, sms // tile.cluster)
    scalars = (1.0, 0.0) if splits > 1 else (alpha, beta)
    work = _Work(
        m, n, n, group or 16 // tile.cluster, steps, per_split,
        splits, mapped, *scalars, _address(target),
    )  # fmt: skip
    function = kernel(tile, transpose_a, transpose_b, dtype)
    calls.append(
        lambda: function(
            *maps, work, grid=clusters * tile.cluster, block=128 * 3,
            shared=tile.shared, stream=stream,
        )
    )  # fmt: skip
    if splits > 1:
        add, blocks = (
            _add_splits(str(c.dtype)),
            min(ct.cdiv(m * n, 256), 8 * sms),
        )
        calls.append(
            lambda: add(
                target, c, m, n, n, splits, alpha, beta, grid=blocks,
                block=256, stream=stream,
            )
        )  # fmt: skip

    def run() -> None:
        for call in calls:
            call()

    run.out, run.kept, run.tile, run.splits = c, kept, tile, splits
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
