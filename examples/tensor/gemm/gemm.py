"""C = alpha op(A) op(B) + beta C by final.cu: factors of bf16 or fp16, any
sizes.

    run = prepare(a, b, c)               # uint16 arrays stand for bf16
    run()                                # as often as wanted
    prepare(a, b, c, transpose_b=True)   # B as it lies: n x k
    prepare(a, b, c, epilogue=Epilogue("relu", bias))   # as epilogue.py says

C is bf16 (uint16) or float32; or A, B and C are float16. Rows that do not begin
at multiples of 16 bytes the TMA cannot read: each run first copies them into
rows that do, or, where there is too little work for that, threads read them.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct
from cudatut.book.tensor.gemm import rounds
from cudatut.book.tensor.gemm.addresses import address
from cudatut.book.tensor.gemm.epilogue import Epilogue

SOURCE, ROWS, DEPTH, CONSUMERS = "tensor/ladder/final.cu", 128, 64, 2
TYPES = {"uint16": "__nv_bfloat16", "float16": "__half", "float32": "float"}
BOX = 64 * 128  # bytes
HALVED = 2  # as in halves.cuh: steps that a tile ends with by halves
LARGEST = 2**31 - 1 - 1024  # of an extent: tiles may reach past it


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
        return self.stages * stage + CONSUMERS * self.buffers * (BOX + 8)


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
        *((name, ctypes.c_uint64) for name in (
            "C", "parts", "flags", "A", "B",
        )),
        ("k", ctypes.c_int),
        *((name, ctypes.c_uint64) for name in ("bias", "residual", "map")),
        ("scale", ctypes.c_float),
    ]  # fmt: skip


def kernel_name(
    tile: Tile,
    transpose_a: bool,
    transpose_b: bool,
    dtype: str,
    plain: bool = False,
    end: str = "",
) -> str:
    """The instance of final.cu. end: its `End`, if not Linear."""
    flags = (str(flag).lower() for flag in (transpose_a, transpose_b))
    numbers = ",".join(map(str, tile))
    name = f"gemm<{numbers},{','.join(flags)},{TYPES[dtype]}"
    if plain or end:
        name += f",{str(plain).lower()}"
    return name + (f",{end}>" if end else ">")


def end_of(
    plan: "Plan",
    mapped: bool,
    alpha: float = 1.0,
    beta: float = 0.0,
    epilogue: Epilogue | None = None,
    transpose_a: bool = False,
    steps: int = HALVED + 1,
) -> str:
    """Which `End` a launch needs. mapped: the TMA stores C; steps: of the
    depth, which count where there are few.
    """
    if epilogue:
        return epilogue.type
    rare = plan.plain or plan.share or not mapped
    if rare or (alpha, beta) != (1, 0):
        return ""
    several = plan.tile == TILES[0] and plan.whole > plan.workers
    halves = several and not transpose_a and steps > HALVED
    return "ByHalves" if halves else "Bare"


@cache
def kernel(*instance, **options):
    """An instance of final.cu, as `kernel_name` has it; on all GPUs but Hopper
    a compile error.
    """
    name = kernel_name(*instance, **options)
    return ct.Kernel(SOURCE, name, arch="sm_90a")


@cache
def _pad_rows():
    return ct.Kernel("tensor/gemm/pad.cu", "pad_rows")


# --8<-- [start:choose]
class Plan(NamedTuple):
    """A tile; how many workers, blocks or clusters, share the work; how many
    tiles are computed whole; the steps of a worker's share of the rest; and
    whether threads read the factors, instead of the TMA.
    """

    tile: Tile
    workers: int
    whole: int
    share: int
    plain: bool = False


MOST_PARTS, LEAST_SHARE = 8, 4  # parts of a tile; steps of a share
PLAIN = Tile(64, 8, 1, 1)


def plans(m: int, n: int, k: int, tile: Tile, sms: int) -> list[Plan]:
    """The two ways to give a product to the blocks of a GPU: whole tiles only,
    in full rounds as far as it goes, and, where these do not come out even, the
    last of them in equal shares.
    """
    rows, columns = ct.cdiv(m, ROWS * tile.cluster), ct.cdiv(n, tile.columns)
    tiles, steps, most = rows * columns, ct.cdiv(k, DEPTH), sms // tile.cluster
    found = [Plan(tile, rounds.workers(tiles, most), tiles, 0)]
    if tiles % most:
        # So many rounds of whole tiles that at least one tile for each is left.
        whole = max(tiles // most - 1, 0) * most
        left = (tiles - whole) * steps
        workers = min(most, (tiles - whole) * MOST_PARTS, left // LEAST_SHARE)
        if workers > 0 and (workers == most or not whole):
            found.append(Plan(tile, workers, whole, ct.cdiv(left, workers)))
    return found


class Costs(NamedTuple):
    """What takes time, in cycles of an H100 at 1755 MHz, to compare plans: a
    fit to measured times of all plans of forty shapes and of some squares.
    """

    flop: float = 1 / 4300  # two for each product, of a block
    line: float = 2.65  # of 128 bytes, as the TMA fetches it for a block
    apart: float = 1 / 3500  # a byte of all blocks, none at the same steps
    plain: float = 3200  # a step whose factors threads read
    store: float = 13  # a column of a tile that the TMA stores
    lines: float = 47  # a column of a tile that warps store line by line
    part: float = 11  # a column of a part that is left and added
    shares: float = 1.06  # what shares promise has to be worth that much
    copy: float = 1 / 760  # a byte of a factor, read and written
    launch: float = 3200


COSTS = Costs()


def cycles(
    plan: Plan,
    k: int,
    unaligned: int = 0,
    boxes: bool = True,
    costs: Costs = COSTS,
) -> float:
    """About how long a product takes beside others, to compare plans.

    unaligned: the bytes of the factors that the TMA cannot read as they lie;
    boxes: whether it can store C.
    """
    tile, steps = plan.tile, ct.cdiv(k, DEPTH)
    flops = 2 * ROWS * tile.columns * DEPTH * costs.flop
    lines = ROWS + tile.columns / tile.cluster  # the others fetch the rest
    step = max(flops, lines * costs.line)
    store = tile.columns * (costs.store if boxes else costs.lines)
    blocks = plan.workers * tile.cluster
    # Blocks at the same steps of their tiles share what they fetch in the L2.
    apart = max(step, lines * 128 * blocks * costs.apart)
    time = 0.0
    if plan.plain:
        step = apart = max(apart, costs.plain)
    elif unaligned:
        time = costs.launch + unaligned * costs.copy
    time += ct.cdiv(plan.whole, plan.workers) * (steps * step + store)
    if plan.share:
        others = ct.cdiv(steps, plan.share)
        part = tile.columns * costs.part
        time += plan.share * apart + store + (1 + others) * part
        time *= costs.shares
    return time


def choose(m: int, n: int, k: int, sms: int, unaligned: int = 0) -> Plan:
    """The plan that should be fastest."""
    options = [plan for tile in TILES for plan in plans(m, n, k, tile, sms)]
    if unaligned:
        some = plans(m, n, k, PLAIN, sms)
        options += [plan._replace(plain=True) for plan in some]
    return min(options, key=lambda plan: cycles(plan, k, unaligned, n % 8 == 0))


def group_for(tile: Tile, sms: int) -> int:
    """So many tiles below each other that those at work are about a square."""
    return max(1, round((sms * tile.columns / ROWS) ** 0.5 / tile.cluster))


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
    epilogue: Epilogue | None = None,
    stream: Any = None,
) -> Callable[[], None]:
    """What computes the product each time it is called.

    a, b: uint16, op(A) m x k, op(B) k x n; c: m x n, uint16 or float32; or all
    float16; C-contiguous, and C shares no memory with A and B. plan, group
    (tiles below each other in the order): instead of what is chosen. Two calls
    of one run must not overlap. With an epilogue, beta belongs to its residual,
    and fp16 is refused. Raises TypeError for types, ValueError for shapes and
    places that do not fit.
    """
    take = ct.operands("gemm.prepare")
    to = take.write("C", c, tuple(TYPES), (None, None), most=LARGEST)
    (m, n), dtype = to.shape, to.dtype
    factors = "float16" if dtype == "float16" else "uint16"
    shape = (None, m) if transpose_a else (m, None)
    of_a = take.read("A", a, factors, shape, most=LARGEST)
    k = of_a.shape[0 if transpose_a else 1]
    take.read("B", b, factors, (n, k) if transpose_b else (k, n))
    if epilogue:
        if dtype == "float16":
            raise ValueError("epilogues are for factors of bf16")
        epilogue.take(take, dtype, m, n)
    if not c.size:
        return lambda: None
    if not k or not alpha:  # A and B do not count: zeros of the least size,
        a = b = ct.to_device(np.zeros((8, 8), "uint16"))
        alpha, k = 1.0, 8
        # beyond which the TMA reads zeros; threads would read what is there.
        plan = plan and plan._replace(plain=False)
    sms = ct.device().sm_count
    copied = _unaligned(a, b)
    plan = plan or choose(m, n, k, sms, unaligned_bytes(a, b))
    tile = plan.tile
    calls, wide = [], {}
    if copied and not plan.plain:
        wide, pad = _padded(copied, stream)
        calls.append(pad)
    if plan.plain:
        maps = [bytes(128)] * 3  # none is read
    else:
        boxes = (
            (64, 64) if transpose_a else (ROWS, 64),
            (tile.columns // tile.cluster, 64) if transpose_b else (64, 64),
        )
        maps = [
            ct.tensor_map(wide.get(id(array), array), box, swizzle=128)
            for array, box in zip((a, b), boxes, strict=True)
        ]
        maps.append(maps[0])
    mapped = dtype != "float32" and _aligned(c)
    if mapped:
        maps[2] = ct.tensor_map(c, (64, 64), swizzle=128)
    # For parts of tiles: one for each consumer of each block.
    parts = plan.workers * tile.cluster * CONSUMERS if plan.share else 0
    space = ct.empty(max(parts, 1) * 64 * tile.columns, "float32")
    flags = ct.to_device(np.zeros(max(parts, 1), "uint32"))
    extra, kept = _extra(epilogue, c, beta, mapped)
    work = _Work(
        m, n, n, group or group_for(tile, sms), ct.cdiv(k, DEPTH), plan.whole,
        plan.share, mapped, alpha, beta, address(c), address(space),
        address(flags), address(a), address(b), k,
        *extra,
    )  # fmt: skip
    function = kernel(
        tile, transpose_a, transpose_b, dtype, plan.plain,
        end_of(plan, mapped, alpha, beta, epilogue, transpose_a, work.steps),
    )  # fmt: skip

    def run() -> None:
        for call in calls:
            call()
        function(
            *maps, work, grid=plan.workers * tile.cluster,
            block=128 * (1 + CONSUMERS), shared=tile.shared, stream=stream,
        )  # fmt: skip

    run.out, run.plan = c, plan
    run.flags = flags  # all 0 before and after each run
    # An address keeps nothing alive.
    run.kept = a, b, wide, space, epilogue, kept
    return run


def _extra(
    epilogue: Epilogue | None, c: Any, beta: float, mapped: bool
) -> tuple[tuple, Any]:
    """The addresses and the scale of `Extra` in epilogue.cuh, and what has to
    live as long as they. The map of the residual lies in global memory.
    """
    if not epilogue:
        return (0, 0, 0, 1.0), None
    residual = c if epilogue.residual is None else epilogue.residual
    table = None
    if beta and mapped and epilogue.by_tma and _aligned(residual):
        box = ct.tensor_map(residual, (64, 64), swizzle=128)
        table = ct.to_device(np.frombuffer(box, "uint8").copy())
    bias = 0 if epilogue.bias is None else address(epilogue.bias)
    where = 0 if table is None else address(table)
    return (bias, address(residual), where, epilogue.scale), table


def _aligned(array: Any) -> bool:
    """Whether rows begin at multiples of 16 bytes, as tensor maps need them."""
    return array.shape[1] % 8 == 0 and address(array) % 16 == 0


def _unaligned(a: Any, b: Any) -> list:
    """Those of the two that the TMA cannot read; once, if they are the same."""
    return list({id(x): x for x in (a, b) if not _aligned(x)}.values())


def unaligned_bytes(a: Any, b: Any) -> int:
    """Bytes of the factors that the TMA cannot read as they lie."""
    return sum(array.nbytes for array in _unaligned(a, b))


def _padded(arrays: list, stream: Any) -> tuple[dict[int, Any], Callable]:
    """What has aligned rows instead of one or two arrays, by their `id`, and
    the call that copies there.
    """
    wide, arguments = {}, []
    for array in arrays:
        rows, columns = array.shape
        copy = ct.empty((rows, 8 * ct.cdiv(columns, 8)), "uint16")
        wide[id(array)] = copy
        # The kernel takes the 16 bytes of a piece as four words.
        arguments += [
            np.uint64(address(array)), np.uint64(address(copy)), rows,
            columns,
        ]  # fmt: skip
    if len(arrays) == 1:
        arguments += [np.uint64(0), np.uint64(0), 0, 0]
    pieces = sum(copy.size // 8 for copy in wide.values())
    blocks = min(ct.cdiv(pieces, 256), 16 * ct.device().sm_count)
    pad = _pad_rows()
    return wide, lambda: pad(*arguments, grid=blocks, block=256, stream=stream)
