# ---
# jupyter:
#   cudatut:
#     title: {en: "The roofline of a product", zh: "矩阵乘法的 roofline"}
#     requires: sm_90
#     timeout_s: 120
#     sizes:
#       N: [4096, 40, 4096]
#       l2_size: [16777216, 65536]
#       rounds: [64, 2]
#       runs_timed: [11, 1]
# ---

# %% [markdown]
# Where every rung stands under the roofs of memory, of the L2 cache and of the
# FMA units, from counted bytes and times.

# %% setup
from cudatut.book.measure import l2
from cudatut.book.gemm.ladder.ladder import LADDER, Gemm, earlier_rungs

import cudatut as ct

N = 4096
RUNGS = [*earlier_rungs(), *(LADDER[name] for name in LADDER.names)]
problem = Gemm(N, N, N)
ct.compile_ahead([(rung.path, rung.kernel) for rung in RUNGS])  # side by side

# %% check
# First of all, so that the profiler comes to these launches soon: one of each
# rung, in this order.
runs = {rung.name: problem.launcher(rung) for rung in RUNGS}
if cublas := ct.vendor.gemm(problem.a, problem.b, problem.c, profiled=True):
    runs["cuBLAS"] = cublas
for name, run in runs.items():
    ct.poison(problem.c)
    run()
    if ct.tool.running() != "ncu":
        problem.compare(f"{name}, n = {N}")

# %% predict
# Words that blocks fetch for each tile, if a block fetches each word of its
# strips once.
TILES = {  # rows x columns of a block's tile
    "tiled": (32, 32),
    "thread_tile": (64, 64),
    "block_tile_2d": (128, 128),
    "warp_tile": (128, 128),
    "double_buffer": (128, 128),
    "tma": (128, 128),
    "final": (64, 128),
}
operations = 2 * N**3
least = 4 * 3 * N * N  # A and B read once, C written once


def from_l2(rows, columns):
    """Bytes that all blocks together ask the L2 cache for, and write."""
    return 4 * N**3 * (1 / rows + 1 / columns) + 4 * N * N


ct.facts(
    f"bytes, n = {N}",
    {
        "operations": (operations / 1e9, "GFLOP"),
        "memory, at least": (least / 1e9, "GB"),
        "intensity, at most": (operations / least, "FLOP/B"),
    }
    | {
        f"L2, {name}": (from_l2(*tile) / 1e9, "GB")
        for name, tile in TILES.items()
    },
)

# %% roofs
l2_size = 16_777_216  # bytes: well within the cache
rounds = 64
runs_timed = 11
l2_rate = l2.read_rate(l2_size, rounds, runs_timed)
ct.facts(
    "roofs",
    {
        "memory": (ct.limits.bandwidth(), "GB/s"),
        "L2 cache": (l2_rate, "GB/s"),
        "FMA units": (ct.limits.fma(), "TFLOP/s"),
    },
)

# %% bench
times = ct.bench(runs, flops=problem.flops, name=f"n = {N}", rounds=6)

# %% counters
DRAM, L2 = "dram__bytes.sum", "lts__t_sectors_srcunit_tex.sum"
# ncu sees the kernels of cuBLAS as "...gemm...", or as CUTLASS's "Kernel2".
counted = dict(
    zip(
        runs,
        ct.profile_launches(
            "gemm/roofline",
            "regex:matmul|gemm|Kernel",
            [DRAM, L2],
            launches=len(RUNGS) + ct.vendor.installed(),
        ),
    )
)

# %% points
rows = {}
for name, counters in counted.items():
    memory, cache = counters[DRAM], 32 * counters[L2]  # a sector has 32 bytes
    rows |= {
        f"{name}: memory": (memory / 1e9, "GB"),
        f"{name}: L2": (cache / 1e9, "GB"),
        f"{name}: FLOP per byte of memory": operations / memory,
        f"{name}: FLOP per byte of L2": operations / cache,
        f"{name}: rate": (times[name].value, "TFLOP/s"),
    }
ct.facts("counted", rows)
