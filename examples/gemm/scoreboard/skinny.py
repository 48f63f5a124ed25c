# ---
# jupyter:
#   cudatut:
#     title: {en: "Products with few rows, few columns, or great depth", zh: "行很少、列很少或深度很大的乘积"}
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
import random
from statistics import median

from cudatut.book.rivals import cublaslt
import numpy as np

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
words = [
    ct.rng(seed).random(count, dtype="float32") - np.float32(0.5)
    for seed, count in (
        (0, max(m * k for m, _, k in SHAPES)),
        (1, max(k * n for _, n, k in SHAPES)),
    )
]
on_gpu = [ct.to_device(each) for each in words]
contests = {}
for m, n, k in SHAPES:
    a, b = (
        each[: rows * columns].reshape(rows, columns)
        for each, rows, columns in zip(on_gpu, (m, k), (k, n))
    )
    c = ct.empty((m, n), "float32")
    run = sgemm.prepare(a, b, c)
    run()
    # Some of the rows and columns, as exact as float64.
    rows = np.unique(np.linspace(0, m - 1, 16).astype(int))
    columns = np.unique(np.linspace(0, n - 1, 16).astype(int))
    left = words[0][: m * k].reshape(m, k)[rows].astype("float64")
    right = words[1][: k * n].reshape(k, n)[:, columns].astype("float64")
    bound = (k + 32) * 2.0**-24 * float((np.abs(left) @ np.abs(right)).max())
    ct.check(
        c.get()[rows][:, columns],
        left @ right,
        name=f"{m} x {n} x {k}",
        rtol=0,
        atol=bound,
    )
    contests[m, n, k] = {"final": run, "cuBLAS": ct.vendor.gemm(a, b, c)}
    if fastest := cublaslt.fastest(a, b, c):
        contests[m, n, k]["cublasLt"] = fastest

# %% contest
rows = {}
for shape, runs in () if ct.tool.running() else contests.items():
    found = ct.take_turns(runs, 21, random.Random(0))
    times = {name: median(values) for name, values in found.items()}
    least = max(bounds[shape].values())
    rows["{} x {} x {}".format(*shape)] = {
        "kernel": runs["final"].kernel.name.partition("<")[0],
        **times,
        "of the limit": 100 * least / times["final"],
        "times cuBLAS": times["cuBLAS"] / times["final"],
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
