# ---
# jupyter:
#   cudatut:
#     title: {en: "Clusters and the last few per cent", zh: "线程块集群与最后几个百分点"}
#     requires: sm_90a
#     timeout_s: 300
#     sizes:
#       side: [8192, 512, 8192]
#       middle: [4096, 256]
#       DEPTH: [4096, 128]
#       GROUPS: [[1, 4, 8, 16, 32, 64], [16], [1, 4, 8, 16, 32, 64]]
#       RAGGED:
#         - [[1000, 1000, 1000], [4095, 4097, 4099], [2000, 3000, 1000],
#            [64, 4096, 4096], [8192, 512, 2048]]
#         - [[255, 257, 259], [64, 512, 512], [1000, 1200, 800]]
# ---

# %% [markdown]
# Blocks that stay, an order of tiles, two blocks that share what they fetch,
# and results that leave while the next tile is multiplied. First one product
# as a whole program.

# %% program
import numpy as np

import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float  # in uint16

m, n, k = 1000, 1200, 800
a = to_bf16(ct.rng(0).standard_normal((m, k)))
b = to_bf16(ct.rng(1).standard_normal((k, n)))
c = ct.empty((m, n), "uint16")

on_gpu = ct.to_device(a), ct.to_device(b)
map_a = ct.tensor_map(on_gpu[0], (128, 64), swizzle=128)
map_b = ct.tensor_map(on_gpu[1], (64, 64), swizzle=128)
map_c = ct.tensor_map(c, (64, 64), swizzle=128)
# Four stages; two boxes of C for each consumer; groups of eight tiles.
kernel = ct.Kernel(
    "tensor/ladder/tma_stores.cu", "gemm_tma_stores<4,2,8>", arch="sm_90a"
)
shared = 4 * ((128 + 256) * 64 * 2 + 2 * 8) + 2 * 2 * 64 * 64 * 2
clusters = ct.cdiv(m, 256) * ct.cdiv(n, 256)  # a tile for each
clusters = min(clusters, ct.device().sm_count // 2)
kernel(map_a, map_b, map_c, m, n, k, grid=2 * clusters, block=384,
       shared=shared)  # fmt: skip

expected = to_float(a) @ to_float(b)
ct.check(to_float(c.get()), expected, rtol=2**-8, atol=1e-2)

# %% setup
from dataclasses import replace

from cudatut.book.tensor.ladder import faults
from cudatut.book.tensor.gemm import gemm
from cudatut.book.tensor.ladder.ladder import LADDER, Gemm

RUNGS = ("two_consumers", "persistent", "clusters", "tma_stores")
SMS = ct.device().sm_count
GROUPS = (1, 4, 8, 16, 32, 64)
ORDERS = {
    group: replace(LADDER["persistent"], kernel=f"gemm_persistent<4,{group}>")
    for group in GROUPS
}


def order(group):
    return (
        f"{group} tile downwards" if group == 1 else f"{group} tiles downwards"
    )


# %% [markdown]
# Right before fast. The profiler counts the first launches of this cell.

# %% check
side = 8192
problem = Gemm(side, side, side)
for name in (*RUNGS, "final"):
    problem.check(LADDER[name])
for rung in ORDERS.values():
    problem.check(rung)
for name in (*RUNGS, "final"):
    LADDER.check(name, LADDER.trials[:-1])
SHAPES = [
    (1, 1, 1),
    (127, 255, 63),
    (257, 131, 333),
    (300, 77, 2000),
    (5, 3, 0),
]
LADDER.check(
    "final", [{"m": m, "n": n, "k": k, "integers": True} for m, n, k in SHAPES]
)

# %% [markdown]
# What 132 tiles need that are computed at the same time: rows of A and columns
# of B, by the order of tiles.


# %% predict
def place_of(tile, group, rows, columns):
    """Row and column of a tile, as order.cuh has them."""
    first = tile // (group * columns) * group
    high = min(group, rows - first)
    i = tile - first * columns
    return first + i % high, i // high


def fetched(group, side=8192, at_once=132):
    """Bytes of A and B that come from memory if each round of tiles fetches
    what it needs once, and finds nothing of the round before."""
    rows, columns = side // 128, side // 256
    tiles = [place_of(t, group, rows, columns) for t in range(rows * columns)]
    total = 0
    for start in range(0, len(tiles), at_once):
        now = tiles[start : start + at_once]
        high, wide = (len(set(some)) for some in zip(*now, strict=True))
        total += (128 * high + 256 * wide) * side * 2
    return total


ct.table(
    "8192 x 8192 x 8192, from memory",
    {
        order(group): {
            "of A and B": fetched(group) / 1e9,
            "at 3 TB/s": fetched(group) / 3e12 * 1e6,
        }
        for group in ORDERS
    },
    corner="order",
    units={"of A and B": "GB", "at 3 TB/s": "us"},
)

# %% groups
ct.bench(
    {order(group): problem.launcher(rung) for group, rung in ORDERS.items()},
    flops=problem.flops,
    rounds=25,
    name=f"persistent, {side} x {side} x {side}",
)

# %% bench
rivals = problem.vendors()
times = ct.bench(
    {
        **{name: problem.launcher(LADDER[name]) for name in RUNGS},
        "final": problem.launcher(LADDER["final"]),
        **rivals,
    },
    flops=problem.flops,
    rounds=25,
    name=f"{side} x {side} x {side}",
)

# %% middle
middle = 4096
half = Gemm(middle, middle, middle)
half.check(LADDER["tma_stores"])
ct.bench(
    {
        **{name: half.launcher(LADDER[name]) for name in RUNGS},
        "final": half.launcher(LADDER["final"]),
        **half.vendors(),
    },
    flops=half.flops,
    rounds=15,
    name=f"{middle} x {middle} x {middle}",
)

# %% traffic
MEMORY, L2 = "dram__bytes_read.sum", "lts__t_sectors_op_read.sum"
COUNTED = (*RUNGS, "final")  # in the order of the checks
found = ct.profile_launches(
    "tensor/clusters",
    kernel="regex:^gemm(_(two_consumers|persistent|clusters|tma_stores))?$",
    metrics=[MEMORY, L2],
    launches=len(COUNTED) + len(ORDERS),
    skip=1,  # the whole program
)
blocks = ct.cdiv(side, 128) * ct.cdiv(side, 256)
# Rows of A and columns of B that a block asks for itself.
lines = dict.fromkeys(COUNTED, 256)
lines["two_consumers"] = lines["persistent"] = 384
counted = [
    {"from memory": c[MEMORY] / 1e9, "from L2": 32 * c[L2] / 1e9} for c in found
]
read = ("asked for", "from memory", "from L2")
if counted:
    ct.table(
        f"read for {side} x {side} x {side}",
        {
            name: {"asked for": blocks * lines[name] * side * 2 / 1e9, **c}
            for name, c in zip(COUNTED, counted)
        },
        corner="rung",
        units=dict.fromkeys(read, "GB"),
    )

# %% traffic-orders
if counted:
    ct.table(
        f"persistent, read for {side} x {side} x {side}",
        {
            order(group): {
                "predicted": fetched(group, side) / 1e9,
                **c,
            }
            for group, c in zip(ORDERS, counted[len(COUNTED) :])
        },
        corner="order",
        units=dict.fromkeys(("predicted", *read[1:]), "GB"),
    )

# %% [markdown]
# From one tile to the next: the clock of an SM when a consumer has ended its
# last products of a tile, and when it begins the first of the next. (Not under
# a tool, which works for seconds on each kernel that is loaded.)

# %% gap
STAMP = "if (blockIdx.x == 0 && threadIdx.x == 128) events"
gaps = {}
for name in RUNGS[1:] if not ct.tool.running() else ():
    rung = LADDER[name]
    kernel = faults.broken(
        rung,
        ("int k) {", "int k, long long* events) {"),
        ("const int consumer =", "int turn = 0; const int consumer ="),
        (
            "wait(&s.full[i], ring.parity);",
            "wait(&s.full[i], ring.parity);\n"
            f"if (step == 0) {STAMP}[2 * turn] = clock64();",
        ),
        (
            "wait_for_products<0>();",
            f"wait_for_products<0>();\n{STAMP}[2 * turn + 1] = clock64();"
            "\n++turn;",
        ),
    )
    maps = [
        ct.tensor_map(problem.a, (128, 64), swizzle=128),
        ct.tensor_map(problem.b, (64, 64), swizzle=128),
    ]
    out = problem.c
    if name == "tma_stores":
        out = ct.tensor_map(out, (64, 64), swizzle=128)
    events = ct.to_device(np.zeros(4096, "int64"))
    shared = 4 * 49168 + rung.number("boxes", 0) * 8192
    kernel(
        *maps, out, side, side, side, events,
        grid=SMS // 2 * 2, block=384, shared=shared,
    )  # fmt: skip
    seen = events.get().reshape(-1, 2)
    begin, end = seen[seen[:, 0] > 0].T
    if len(begin) > 2:
        gaps[name] = {
            "a tile": np.median(end - begin),
            "to the next": np.median(begin[1:] - end[:-1]),
        }
if gaps:
    ct.table("cycles of one consumer", gaps, corner="rung")

# %% [markdown]
# Tiles that come out even, and those that do not: one column of tiles more.

# %% even
DEPTH = 4096
even = 12 * 128, 11 * 256  # 132 tiles, one for each SM of an H100 or H200
more = 12 * 128, 12 * 256  # 144
table = {}
tile = gemm.Tile(256, 4, 1, 2)
for name, (m, n) in {"132 tiles": even, "144 tiles": more}.items():
    one = Gemm(m, n, DEPTH)
    whole, *shares = gemm.plans(m, n, DEPTH, tile, SMS)
    runs = {"whole tiles": gemm.prepare(one.a, one.b, one.c, plan=whole)}
    if shares:
        runs["shares"] = gemm.prepare(one.a, one.b, one.c, plan=shares[0])
        ct.poison(one.c)
        runs["shares"]()
        one.compare(f"{name}, shares")
    runs["final"] = gemm.prepare(one.a, one.b, one.c)  # as gemm.py chooses
    ct.poison(one.c)
    runs["final"]()
    one.compare(f"{name}, final")
    runs.update(one.vendors())
    timed = ct.bench(runs, flops=one.flops, rounds=25, name=name)
    table[name] = {row.name: row.value for row in timed.rows}

# %% even-rates
if not ct.tool.running():
    columns = ("whole tiles", "shares", "final", "cuBLAS")
    ct.table(
        f"depth {DEPTH}",
        {
            name: {column: row.get(column) for column in columns}
            for name, row in table.items()
        },
        corner="tiles",
        units=dict.fromkeys(columns, "TFLOP/s"),
    )

# %% [markdown]
# The final kernel and shapes that nobody chose.

# %% ragged
RAGGED = (
    (1000, 1000, 1000),
    (4095, 4097, 4099),
    (2000, 3000, 1000),
    (64, 4096, 4096),
    (8192, 512, 2048),
)
table = {}
for m, n, k in RAGGED:
    one = Gemm(m, n, k)
    one.check(LADDER["final"])
    if ct.tool.running():
        continue
    timed = ct.bench(
        {"final": one.launcher(LADDER["final"]), **one.vendors()},
        flops=one.flops,
        name=f"{m} x {n} x {k}",
    )
    plan = gemm.choose(m, n, k, SMS)
    rates = {row.name: row.value for row in timed.rows}
    table[f"{m} x {n} x {k}"] = {
        "columns of a tile": plan.tile.columns,
        "final": rates["final"],
        "cuBLAS": rates.get("cuBLAS"),
    }
if table:
    units = {"final": "TFLOP/s", "cuBLAS": "TFLOP/s"}
    ct.table("any shape", table, corner="m x n x k", units=units)
