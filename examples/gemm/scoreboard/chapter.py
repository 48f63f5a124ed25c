# ---
# jupyter:
#   cudatut:
#     title: {en: "The scoreboard of matrix products", zh: "矩阵乘法排行榜"}
#     requires: sm_90
#     timeout_s: 180
#     sizes:
#       SIZES: [[128, 256, 512, 1024, 2048, 4096], [40]]
#       RAGGED: [[1000, 2047, 3001], [33]]
#       LARGEST: [8192, 34]
# ---

# %% [markdown]
# Every rung and cuBLAS, from 128 to 8192, at powers of two and beside them.
# First one contest as a whole program.

# %% program
import cudatut as ct

from cudatut.book.gemm.kernels import sgemm  # how the final kernel is launched

n = 1000
a = ct.to_device(ct.rng(0).random((n, n), dtype="float32"))
b = ct.to_device(ct.rng(1).random((n, n), dtype="float32"))
c = ct.empty((n, n), "float32")
run = sgemm.prepare(a, b, c)
run()
ct.check(c, a.get().astype("float64") @ b.get(), atol=1e-2)

rivals = {"final": run, "cuBLAS": ct.vendor.gemm(a, b, c)}
bench = ct.bench(rivals, flops=2 * n**3, name=f"n = {n}")

# %% [markdown]
# `prepare` plans the launch of `final`. All other rungs are launched by what
# their `@rung` line says, here by hand: block=256 tile=128x128.

# %% launch
kernel = ct.Kernel(
    "gemm/ladder/register_prefetch.cu",
    "sgemm_register_prefetch<128,128,8,32,64,8,8>",
)
grid = ct.cdiv(n, 128), ct.cdiv(n, 128)  # a block for each tile of C
ct.poison(c)
kernel(a, b, c, n, n, n, 1.0, 0.0, grid=grid, block=256)
ct.check(
    c, a.get().astype("float64") @ b.get(), atol=1e-2, name="launched by hand"
)

# %% setup
import itertools
import math

from cudatut.book.rivals import cublaslt
from cudatut.book.gemm.kernels import sgemm
from cudatut.book.gemm.ladder.ladder import LADDER, Gemm, earlier_rungs

import cudatut as ct

SMS = ct.device().sm_count
RUNGS = [*earlier_rungs(), *(LADDER[name] for name in LADDER.names)]
SIZES = (128, 256, 512, 1024, 2048, 4096)
RAGGED = (1000, 2047, 3001)
LARGEST = 8192
# 25 to 60 ms a run at 8192.
FINALISTS = ("warp_tile", "double_buffer", "register_prefetch", "final")
ct.compile_ahead([(rung.path, rung.kernel) for rung in RUNGS])  # side by side
LATER = [rung for rung in RUNGS if not rung.path.startswith("basics/")]

# %% [markdown]
# Bounds, and how many blocks there are.

# %% predict
limit, bandwidth = ct.limits.fma(), ct.limits.bandwidth()
table = {}
for n in (*SIZES, LARGEST):
    plan = sgemm.plan(n, n, n, SMS)
    tiles = math.prod(
        ct.cdiv(n, side) for side in (plan.config.bm, plan.config.bn)
    )
    table[f"{n}"] = {
        "FMAs at the limit": 2e-6 * n**3 / limit,
        "bytes at the limit": 12e-3 * n * n / bandwidth,
        "blocks of 128 x 128": ct.cdiv(n, 128) ** 2,
        "blocks of final": plan.whole + (tiles - plan.whole) * plan.splits,
    }
ct.table(
    "bounds",
    table,
    corner="m = n = k",
    units={"FMAs at the limit": "us", "bytes at the limit": "us"},
)

# %% [markdown]
# Each contestant is checked, then they take turns.

# %% sweep
times = {}


def contest(rungs, n, rounds):
    """Check all of them, then time them, cuBLAS, and the fastest of what
    cublasLt offers, taking turns."""
    problem = Gemm(n, n, n)
    for rung in rungs:
        problem.check(rung)
    runs = {rung.name: problem.launcher(rung) for rung in rungs}
    times[n] = ct.bench(
        {
            **runs,
            **problem.vendors(),
            "cublasLt": cublaslt.fastest(problem.a, problem.b, problem.c),
        },
        flops=problem.flops,
        name=f"n = {n}",
        rounds=rounds,
    )


for n in SIZES:
    contest(RUNGS, n, rounds=8 if n > 2048 else 12)
for n in RAGGED:
    contest(LATER, n, rounds=8)

# %% largest
contest([LADDER[name] for name in FINALISTS], LARGEST, rounds=6)

# %% series
names = [] if ct.tool.running() else [row.name for row in times[SIZES[0]].rows]


def line(name):
    """TFLOP/s by size, where the rung took part; ragged sizes apart."""
    found = [(n, times[n]) for n in (*SIZES, LARGEST)]
    return [
        (n, bench[name].value)
        for n, bench in found
        if name in [r.name for r in bench.rows]
    ]


if names:
    ct.series(
        "rate by size",
        x=("m = n = k", ""),
        y=("rate", "TFLOP/s"),
        lines={name: line(name) for name in names},
        limit=limit,
        foreground=[
            "naive_columns",
            "thread_tile",
            "vectorized",
            "double_buffer",
            "final",
            "cuBLAS",
        ],
    )

# %% ragged
if names:
    SHOWN = (
        "vectorized",
        "double_buffer",
        "tma",
        "final",
        "cuBLAS",
        "cublasLt",
    )
    ct.table(
        "TFLOP/s beside powers of two",
        {
            f"{n}": {name: times[n][name].value for name in SHOWN}
            for n in (1024, 1000, 2048, 2047, 3001)
        },
        corner="m = n = k",
    )

# %% [markdown]
# Beside cuBLAS, beside what was wanted, and rung by rung.

# %% ratios
if names:
    ratios = {
        n: bench["cuBLAS"].median_us / bench["final"].median_us
        for n, bench in times.items()
    }
    ct.facts(
        "final, times as fast as cuBLAS",
        {f"{n}": ratios[n] for n in sorted(ratios)}
        | {
            f"{n}: middle 60 % of cuBLAS's times": (
                100
                * (times[n]["cuBLAS"].p80_us / times[n]["cuBLAS"].p20_us - 1),
                "%",
            )
            for n in (2048, 4096, 8192)
        },
    )


# %% searched
def searched(n):
    """final, times as fast as the fastest that cublasLt offers."""
    return times[n]["cublasLt"].median_us / times[n]["final"].median_us


if names and "cublasLt" in names:
    ct.facts(
        "final, times as fast as the best of cublasLt",
        {f"{n}": searched(n) for n in sorted(ratios)},
    )

# %% targets
if names:
    ct.facts(
        "wanted and measured",
        {
            "2048: times cuBLAS (1.00 wanted)": ratios[2048],
            "4096: times cuBLAS (1.03 wanted)": ratios[4096],
            "8192: times cuBLAS (1.03 wanted)": ratios[8192],
            "8192: of the FMA limit (90 wanted)": (
                100 * times[8192]["final"].value / limit,
                "%",
            ),
            "8192: cuBLAS, of the FMA limit": (
                100 * times[8192]["cuBLAS"].value / limit,
                "%",
            ),
        },
    )

# %% gains
if names:
    at = times[4096]
    order = [rung.name for rung in RUNGS]
    ct.facts(
        "n = 4096: times as fast as the rung before",
        {b: at[b].value / at[a].value for a, b in itertools.pairwise(order)}
        | {
            "register_prefetch beside double_buffer": at[
                "register_prefetch"
            ].value
            / at["double_buffer"].value,
            "all rungs together": at["final"].value / at[order[0]].value,
        },
    )
