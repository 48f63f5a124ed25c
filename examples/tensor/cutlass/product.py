# ---
# jupyter:
#   cudatut:
#     title: {en: "The product through CuTe", zh: "用 CuTe 计算乘积"}
#     requires: sm_90a
#     extra: cutlass
#     timeout_s: 240
#     sizes:
#       side: [8192, 256, 8192]
#       middle: [4096, 256]
# ---

# %% [markdown]
# The same product by the library, from Python, beside the rungs of this part
# and cuBLAS. First one product as a whole program.

# %% program
from cudatut.book.tensor.cutlass import gemm as cutlass_gemm
from cudatut.book.tensor.ladder.ladder import LADDER, Gemm

problem = Gemm(1000, 1200, 800)
# NaN, where nothing is written. initcheck does not see what CuTe's kernel
# stores, and takes only filled memory for written.
problem.c.fill(0xFFFF)
multiply = cutlass_gemm.prepare(problem.a, problem.b, problem.c)
multiply()
problem.compare("CuTe")

# %% setup
import time
from collections import Counter

from cudatut.book.tensor.cutlass import gemm as through

import cudatut as ct

from cudatut.book.measure import loops

SHAPES = {
    "128 x 256, clusters of 2": through.SHAPE,
    "without clusters": through.Shape(cluster=1, group=8),
    "row by row": through.Shape(group=1),
    "two stages": through.Shape(stages=2),
    "128 x 128, six stages": through.Shape(columns=128, stages=6),
}


def cute(problem, shape=through.SHAPE):
    return through.prepare(problem.a, problem.b, problem.c, shape)


# %% [markdown]
# Right before fast: whole numbers allow no error but the last rounding.

# %% check
for m, n, k in (
    (1, 8, 8),
    (128, 256, 64),
    (130, 264, 72),
    (257, 520, 200),
    (520, 1032, 704),
    (2048, 2048, 2048),
):
    one = Gemm(m, n, k, integers=True)
    for name, shape in SHAPES.items():
        one.c.fill(0xFFFF)  # NaN; ct.poison does nothing under initcheck
        cute(one, shape)()
        one.compare(f"{name}: {m} x {n} x {k}")

# %% [markdown]
# How long it takes to compile one kernel: CuTe DSL, which traces Python, and
# nvcc, for a rung that no cache has.

# %% compile
source = ct.paths.resolve_source("tensor/ladder/tma_stores.cu").read_text()
source = source.replace('"products.cuh"', '"tensor/ladder/products.cuh"')
rung = LADDER["tma_stores"]
started = time.perf_counter()
kept = through.kept(through.SHAPE)
traced = time.perf_counter() - started
if not ct.tool.running():
    started = time.perf_counter()
    ct.Kernel(f"{source}// {started}", rung.kernel, arch="sm_90a", load=False)
    by_nvcc = time.perf_counter() - started
    ct.facts(
        "to compile",
        {
            "CuTe DSL": (traced, "s"),
            "nvcc": (by_nvcc, "s"),
            "version of CuTe DSL": through.cutlass.__version__,
        },
    )

# %% [markdown]
# What became of it in machine code, beside the rung.

# %% sass
WATCHED = ("HGMMA", "UTMALDG", "STSM", "UTMASTG", "SYNCS", "BAR")
table = {}
for name, kernel in {
    "tma_stores": rung.compile(),
    "CuTe": kept,
}.items():
    found = Counter(i.op.split(".")[0] for i in loops.disassemble(kernel))
    table[name] = {op: found[op] for op in WATCHED}
    table[name]["all"] = sum(found.values())
ct.table("instructions in the whole machine code", table, corner="kernel")

# %% bench
side = 8192
problem = Gemm(side, side, side)
problem.c.fill(0xFFFF)
cute(problem)()
problem.compare(f"CuTe, {side}")
times = ct.bench(
    {
        "tma_stores": problem.launcher(LADDER["tma_stores"]),
        "final": problem.launcher(LADDER["final"]),
        "CuTe": cute(problem),
        **problem.vendors(),
    },
    flops=problem.flops,
    rounds=25,
    name=f"{side} x {side} x {side}",
)

# %% middle
middle = 4096
half = Gemm(middle, middle, middle)
ct.bench(
    {
        "persistent": half.launcher(LADDER["persistent"]),
        "tma_stores": half.launcher(LADDER["tma_stores"]),
        "final": half.launcher(LADDER["final"]),
        "CuTe": cute(half),
        **half.vendors(),
    },
    flops=half.flops,
    rounds=25,
    name=f"{middle} x {middle} x {middle}",
)

# %% [markdown]
# The same kernel with other numbers in its `Shape`.

# %% shapes
ct.bench(
    {name: cute(half, shape) for name, shape in SHAPES.items()},
    flops=half.flops,
    rounds=25,
    name=f"CuTe, {middle} x {middle} x {middle}",
)
