# ---
# jupyter:
#   cudatut:
#     title: {en: "Products with few rows, few columns, or great depth", zh: "行很少、列很少或深度很大的矩阵乘法"}
#     requires: sm_80
#     timeout_s: 120
#     sizes:
#       side: [4096, 96]
#       long: [100_000, 300]
# ---

# %% [markdown]
# Shapes that are nothing like a square. First one of them as a whole program:
# a vector times a matrix.

# %% program
import cudatut as ct

from cudatut.book.gemm.kernels import sgemm

m, n, k = 1, 2000, 3000
a = ct.to_device(ct.rng(0).random((m, k), dtype="float32"))
b = ct.to_device(ct.rng(1).random((k, n), dtype="float32"))
c = ct.empty((m, n), "float32")
run = sgemm.prepare(a, b, c)
run()
ct.check(c, a.get().astype("float64") @ b.get(), rtol=1e-4)
print("computed by", run.kernel.name, "with", run.splits, "parts")

# %% setup
import numpy as np

from cudatut.book.gemm.shapes.contests import contests
from cudatut.book.measure import spread

side = 4096
long = 100_000
SHAPES = (
    (side, 1, side),
    (1, side, side),
    (side, 4, side),
    (4, side, side),
    (side, 16, side),
    (16, side, side),
    (4 * side, 8, side),
    (long, 3, 64),
    (3, long, 64),
    (3, 3, long),
    (16, 16, long),
    (64, 64, long),
    (5 * side // 4, 3 * side // 8, 27 * side // 8),
)

# %% [markdown]
# The least time, if each matrix moves once and nothing else takes time.

# %% predict
limit, bandwidth = ct.limits.fma(), ct.limits.bandwidth()
bounds = {}
for m, n, k in SHAPES:
    bounds[m, n, k] = {
        "bytes": 4e-3 * (m * k + k * n + m * n) / bandwidth,
        "FMAs": 2e-6 * m * n * k / limit,
    }
ct.table(
    "least time",
    {"{} x {} x {}".format(*shape): row for shape, row in bounds.items()},
    corner="m x n x k",
    units={"bytes": "us", "FMAs": "us"},
)

# %% check
found = contests(SHAPES)

# %% contest
rows = {}
for shape, runs in () if ct.tool.running() else found.items():
    times = spread.medians(runs, 21)
    least = max(bounds[shape].values())
    rows["{} x {} x {}".format(*shape)] = {
        "kernel": runs["final"].kernel.name.partition("<")[0],
        **times,
        "of the limit": 100 * least / times["final"],
        "times cuBLAS": times.get("cuBLAS", np.nan) / times["final"],
        "times cublasLt": times.get("cublasLt", np.nan) / times["final"],
    }
if rows:
    ct.table(
        "few rows, few columns, great depth",
        rows,
        corner="m x n x k",
        units={"final": "us", "cuBLAS": "us", "cublasLt": "us"}
        | {"of the limit": "%"},
    )

# %% ahead
if rows:
    ct.facts(
        "final",
        {
            "ahead of cuBLAS": sum(
                row["times cuBLAS"] > 1 for row in rows.values()
            ),
            "ahead of cublasLt": sum(
                row["times cublasLt"] > 1 for row in rows.values()
            ),
            "shapes": len(rows),
            "least: times cuBLAS": min(
                row["times cuBLAS"] for row in rows.values()
            ),
            "least: times cublasLt": min(
                row["times cublasLt"] for row in rows.values()
            ),
        },
    )
