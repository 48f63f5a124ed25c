# ---
# jupyter:
#   cudatut:
#     title: {en: "The scoreboard of tensor cores", zh: "张量核心排行榜"}
#     requires: sm_90a
#     timeout_s: 300
#     sizes:
#       SIZES: [[256, 512, 1024, 2048, 4096, 8192, 16384], [136]]
#       LARGE: [[2048, 4096, 8192, 16384], [264]]
# ---

# %% [markdown]
# Every rung, cuBLAS, and the fastest that cublasLt offers, from 256 to 16384.
# First one contest as a whole program.

# %% program
import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float  # in uint16

from cudatut.book.tensor.ladder import ladder
from cudatut.book.tensor.gemm import gemm  # how the final kernel is launched

n = 1000
a = to_bf16(ct.rng(0).standard_normal((n, n)))
b = to_bf16(ct.rng(1).standard_normal((n, n)))
c = ct.empty((n, n), "uint16")
on_gpu = ct.to_device(a), ct.to_device(b)
run = gemm.prepare(*on_gpu, c)
run()
ct.check(to_float(c.get()), to_float(a) @ to_float(b), rtol=2**-8, atol=1e-2)

rival = ladder.cublas(*on_gpu, c)
ct.bench({"final": run, "cuBLAS": rival}, flops=2 * n**3, name=f"n = {n}")

# %% [markdown]
# The other rungs are launched by what their `@rung` line says, here by hand:
# tile=256x128, box_a=128x64 and stage=49152 of `two_consumers`, in 3 stages.

# %% launch
kernel = ct.Kernel(
    "tensor/ladder/two_consumers.cu", "gemm_two_consumers<3>", arch="sm_90a"
)
# What one copy brings: 128 rows of A, 64 of B.
map_a = ct.tensor_map(on_gpu[0], (128, 64), swizzle=128)
map_b = ct.tensor_map(on_gpu[1], (64, 64), swizzle=128)
grid = ct.cdiv(n, 256), ct.cdiv(n, 128)  # a block for each tile of C
shared = 3 * (49152 + 2 * 8)  # and two barriers for each stage

ct.poison(c)
kernel(map_a, map_b, c, n, n, n, grid=grid, block=384, shared=shared)
ct.check(
    to_float(c.get()), to_float(a) @ to_float(b), rtol=2**-8, atol=1e-2,
    name="launched by hand",
)  # fmt: skip

# %% setup
import itertools

from cudatut.book.rivals import cublaslt
from cudatut.book.tensor.ladder.ladder import LADDER, Gemm

SMS = ct.device().sm_count
RUNGS = [LADDER[name] for name in LADDER.names]
SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384)
LARGE = (2048, 4096, 8192, 16384)
problems = {n: Gemm(n, n, n) for n in sorted({*SIZES, *LARGE})}

# %% [markdown]
# Bounds, and how many blocks there are. An SM of Hopper does 4096
# FLOP of bf16 products in a cycle.

# %% predict
peak = 4096 * SMS * ct.attributes()["CLOCK_RATE"] / 1e9  # TFLOP/s
bandwidth = ct.limits.bandwidth()
table = {}
for n in SIZES:
    plan = gemm.choose(n, n, n, SMS)
    table[f"{n}"] = {
        "products at the limit": 2e-6 * n**3 / peak,
        "bytes at the limit": 6e-3 * n * n / bandwidth,
        "tiles of 128 x 256": ct.cdiv(n, 128) * ct.cdiv(n, 256),
        "blocks of final": plan.workers * plan.tile.cluster,
        "columns of its tile": plan.tile.columns,
    }
ct.table(
    "bounds",
    table,
    corner="m = n = k",
    units={"products at the limit": "us", "bytes at the limit": "us"},
)

# %% [markdown]
# Each contestant is checked, then they take turns.

# %% sweep
times = {}
for n in SIZES:
    problem = problems[n]
    for rung in RUNGS:
        problem.check(rung)
    times[n] = ct.bench(
        {
            **{rung.name: problem.launcher(rung) for rung in RUNGS},
            **problem.vendors(),
        },
        flops=problem.flops,
        name=f"n = {n}",
        rounds=8 if n > 8192 else 25 if n > 4096 else 12,
        limit=False,
    )

# %% series
names = [] if ct.tool.running() else [row.name for row in times[SIZES[0]].rows]
beside = "cuBLAS" in names  # which needs PyTorch
FOREGROUND = ("fma", "mma_spread", "wgmma", "two_consumers", "final", "cuBLAS")
if names:
    ct.series(
        "rate by size",
        x=("m = n = k", ""),
        y=("rate", "TFLOP/s"),
        lines={
            name: [(n, bench[name].value) for n, bench in times.items()]
            for name in names
        },
        foreground=[name for name in FOREGROUND if name in names],
    )

# %% beside
if beside:
    ct.table(
        "rate by size, times cuBLAS",
        {
            name: {
                f"n = {n}": bench[name].value / bench["cuBLAS"].value
                for n, bench in times.items()
            }
            for name in ("two_consumers", "final")
        },
        corner="rung",
    )

# %% [markdown]
# The large sizes once more, with more rounds, and beside the fastest of what
# cublasLt offers.

# %% large
finals = {}
for n in LARGE:
    problem = problems[n]
    ct.poison(problem.c)
    found = cublaslt.fastest(problem.a, problem.b, problem.c, "bf16")
    if found:
        found()
        problem.compare(f"cublasLt, n = {n}")
    finals[n] = ct.bench(
        {
            "tma_stores": problem.launcher(LADDER["tma_stores"]),
            "final": problem.launcher(LADDER["final"]),
            **problem.vendors(),
            "cublasLt": found,
        },
        flops=problem.flops,
        name=f"large: n = {n}",
        rounds=25,
    )

# %% ratios
if beside:
    ratios = {
        n: bench["cuBLAS"].median_us / bench["final"].median_us
        for n, bench in finals.items()
    }
    ct.facts(
        "final, times as fast as cuBLAS",
        {f"{n}": ratio for n, ratio in ratios.items()}
        | {
            f"{n}: middle 60 % of cuBLAS's times": (
                100 * (bench["cuBLAS"].p80_us / bench["cuBLAS"].p20_us - 1),
                "%",
            )
            for n, bench in finals.items()
        },
    )

# %% searched
if names and "cublasLt" in [row.name for row in finals[LARGE[0]].rows]:
    ct.facts(
        "final, times as fast as the best of cublasLt",
        {
            f"{n}": bench["cublasLt"].median_us / bench["final"].median_us
            for n, bench in finals.items()
        },
    )

# %% [markdown]
# Beside what was wanted, and rung by rung.

# %% targets
WANTED = {2048: 1.0, 4096: 1.0, 8192: 1.03, 16384: 1.03}
if beside:
    ct.table(
        "times cuBLAS",
        {
            f"{n}": {"goal": WANTED[n], "measured": ratios[n]}
            for n in LARGE
            if n in WANTED
        },
        corner="m = n = k",
    )

# %% gains
if names:
    at = times[8192]
    ladder = [rung.name for rung in RUNGS]
    ct.table(
        "n = 8192",
        {
            name: {
                "rate": at[name].value,
                "of cuBLAS": 100 * at[name].value / at["cuBLAS"].value
                if beside
                else None,
                "of the limit": 100 * at[name].value / peak,
            }
            for name in ladder
        },
        corner="rung",
        units={"rate": "TFLOP/s", "of cuBLAS": "%", "of the limit": "%"},
    )

# %% steps
if names:
    ct.facts(
        "n = 8192: times as fast as the rung before",
        {b: at[b].value / at[a].value for a, b in itertools.pairwise(ladder)}
        | {"all rungs together": at["final"].value / at[ladder[0]].value},
    )
