# ---
# jupyter:
#   cudatut:
#     title: {en: "Matrix multiplication by hand", zh: "手写矩阵乘法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       side: [1024, 96]
#       large: [4096, 96]
#       terms: [16384, 256]
# ---

# %% [markdown]
# C = A B. First on the CPU: three loops.

# %% loops
import numpy as np


def product(A, B):
    m, k = A.shape
    n = B.shape[1]
    C = np.zeros((m, n), "float32")
    for row in range(m):
        for column in range(n):
            for i in range(k):
                C[row, column] += A[row, i] * B[i, column]
    return C


# %% [markdown]
# The two outer loops become threads, in two orders. Both kernels are checked on
# small matrices, then timed beside cuBLAS.

# %% program
import numpy as np

import cudatut as ct

source = """
__global__ void naive_columns(const float *__restrict__ A,
                              const float *__restrict__ B,
                              float *__restrict__ C, int m, int n, int k) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i)
    sum += A[(size_t)row * k + i] * B[(size_t)i * n + column];
  C[(size_t)row * n + column] = sum;
}

__global__ void naive_rows(const float *__restrict__ A,
                           const float *__restrict__ B,
                           float *__restrict__ C, int m, int n, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int column = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i)
    sum += A[(size_t)row * k + i] * B[(size_t)i * n + column];
  C[(size_t)row * n + column] = sum;
}
"""
kernels = {
    name: ct.Kernel(source, name) for name in ("naive_columns", "naive_rows")
}
rng = ct.rng(0)


def multiply(name, A, B, C):
    (m, k), n = A.shape, B.shape[1]
    grid = ct.cdiv(n, 32), ct.cdiv(m, 32)  # x: columns, y: rows
    if name == "naive_rows":
        grid = ct.cdiv(m, 32), ct.cdiv(n, 32)  # x: rows, y: columns
    kernels[name](A, B, C, m, n, k, grid=grid, block=(32, 32))


m, n, k = 500, 300, 200
A = rng.random((m, k), dtype="float32")
B = rng.random((k, n), dtype="float32")
exact = A.astype("float64") @ B.astype("float64")
tolerance = k * 2.0**-24 * exact.max()  # all elements are positive
for name in kernels:
    C = ct.empty((m, n), "float32")
    multiply(name, ct.to_device(A), ct.to_device(B), C)
    ct.check(C, exact, name=name, rtol=0, atol=tolerance)

large = 4096
square = large, large
X = ct.to_device(rng.random(square, dtype="float32"))
Y = ct.to_device(rng.random(square, dtype="float32"))
Z = ct.empty(square, "float32")
times = ct.bench(
    {
        "naive_columns": lambda: multiply("naive_columns", X, Y, Z),
        "naive_rows": lambda: multiply("naive_rows", X, Y, Z),
        "cuBLAS": ct.vendor.matmul(X, Y, Z),
    },
    flops=2 * large**3,
    rounds=3,
    name="4096 x 4096 x 4096",
)
ms = {row.name: (row.median_us / 1e3, "ms") for row in times.rows}
ct.yours("basics/naive_matmul#program", ms)

# %% [markdown]
# The loops of the CPU find the same, on a corner of C.

# %% check-loops
corner = product(A[:8, :40], B[:40, :8])
exact = A[:8, :40].astype("float64") @ B[:40, :8].astype("float64")
ct.check(corner, exact, name="three loops", rtol=0, atol=tolerance)

# %% [markdown]
# What has to be done for 4096 x 4096 matrices, and what this takes at least at
# the limits of this GPU.

# %% counts
n = 4096
operations, bytes_once = 2 * n**3, 3 * 4 * n**2
bytes_each_load = 4 * 2 * n**3
ct.facts(
    "C = A B, 4096 x 4096",
    {
        "operations": (operations / 1e9, "GFLOP"),
        "bytes, each element once": (bytes_once / 1e6, "MB"),
        "bytes, each load": (bytes_each_load / 1e9, "GB"),
        "bytes, with the old C": (4 * 4 * n**2 / 1e6, "MB"),
    },
)

# %% bounds
bandwidth, fma = ct.limits.bandwidth(), ct.limits.fma()
ct.facts(
    "time at least",
    {
        "for the arithmetic": (operations / fma / 1e9, "ms"),
        "if each element comes from memory once": (
            bytes_once / bandwidth / 1e6,
            "ms",
        ),
        "if each load goes to memory": (
            bytes_each_load / bandwidth / 1e6,
            "ms",
        ),
    },
)

# %% balance
ct.facts(
    "operations per byte",
    {
        "each element once": operations / bytes_once,
        "each load": operations / bytes_each_load,
        "balance of this GPU": 1e3 * fma / bandwidth,
    },
)

# %% [markdown]
# Both kernels, in sizes that no block divides, without products and without
# rows. The ladder of this part launches them and knows how far a right result may
# be off.

# %% check
from cudatut.book.basics.ladder.ladder import LADDER, Matmul

side = 1024
SHAPES = [
    (side, side, side),
    (1, 1, 1),
    (31, 33, 7),
    (33, 31, 129),
    (100, 70, 50),
    (1, 1000, 3),
    (1000, 1, 3),
    (3, 5, 0),  # no products: C is all zeros
    (0, 5, 3),  # no rows: nothing to do
]
for name in ("naive_columns", "naive_rows"):
    LADDER.check(name, [{"m": m, "n": n, "k": k} for m, n, k in SHAPES])

# %% check-integers
for name in ("naive_columns", "naive_rows"):
    LADDER.check(name, [{"m": 33, "n": 65, "k": 1000, "integers": True}])

# %% [markdown]
# How far from the bound is the truth?

# %% error
problem = Matmul(side, side, side)
problem.launcher(LADDER["naive_columns"])()
expected, bound = problem.reference
error = float(np.abs(problem.c.get().astype("float64") - expected).max())
ct.facts(
    "error of an element, k = 1024",
    {
        "error bound": bound,
        "largest error": error,
        "error / bound": error / bound,
    },
)

# %% [markdown]
# The time for 4096, beside NVIDIA's library.

# %% check-large
large = 4096
for name in ("naive_rows", "naive_columns"):
    LADDER.check(name, [{"m": large, "n": large, "k": large}])

# %% bench
times = LADDER.bench(
    LADDER.upto("naive_columns"),
    m=large,
    n=large,
    k=large,
    rounds=3,
    name="4096 x 4096 x 4096",
)

# %% compared
rows_us, columns_us = (
    times[f"naive_{x}"].median_us for x in ("rows", "columns")
)
cublas_us = min((row.median_us for row in times.rows if row.vendor), default=1)
ct.facts(
    "times compared",
    {
        "naive_rows / naive_columns": rows_us / columns_us,
        "naive_columns / cuBLAS": columns_us / cublas_us,
    },
)

# %% [markdown]
# Is the comparison fair? cuBLAS could round its operands to TF32, which is
# faster. Its error tells.

# %% vendor
problem = Matmul(large, large, large)
expected, _ = problem.reference


def largest_error(run):
    """Of the sampled rows, against fp64."""
    ct.poison(problem.c)
    run()
    return float(np.abs(problem.c.get()[problem.rows] - expected).max())


def cut(array):
    """10 bits of mantissa, as in TF32."""
    bits = array.view("uint32") & np.uint32(0xFFFFE000)
    return bits.view("float32").astype("float64")


ours = largest_error(problem.launcher(LADDER["naive_columns"]))
vendor = problem.vendors()["cuBLAS"]  # None without the library
cublas = largest_error(vendor) if vendor else float("nan")
tf32 = cut(problem.host_a)[problem.rows] @ cut(problem.host_b)

# %% vendor-error
ct.facts(
    "largest error of an element, k = 4096",
    {
        "naive_columns": ours,
        "cuBLAS": cublas,
        "operands cut to TF32, exact sum": float(np.abs(tf32 - expected).max()),
    },
)
if vendor:
    measured = np.array([cublas])
    ct.check(
        measured, np.zeros(1), name="cuBLAS is fp32", rtol=0, atol=10 * ours
    )

# %% [markdown]
# Both kernels need the same of an SM. What differs is which elements the 32 lanes
# of a warp ask for together.

# %% resources
for name in ("naive_rows", "naive_columns"):
    ct.show(LADDER[name].compile().resources(block=(32, 32)))

# %% first-warp
k = n = 1024
lane = np.arange(32)
lanes = {"naive_rows": (lane, 0 * lane), "naive_columns": (0 * lane, lane)}
ct.table(
    "elements from one lane to the next",
    {
        name: {
            "in A": int(np.diff(row * k)[0]),
            "in B": int(np.diff(column)[0]),
            "in C": int(np.diff(row * n + column)[0]),
        }
        for name, (row, column) in lanes.items()
    },
    corner="kernel",
)

# %% [markdown]
# The grid is rounded up in both directions. Rounded down, it leaves elements
# that nobody writes.

# %% edges
m, n, k = 100, 70, 50
edge = 32
problem = Matmul(m, n, k)
kernel = LADDER["naive_columns"].compile()
c = ct.to_device(np.full((m, n), np.nan, "float32"))
short = n // edge, m // edge  # rounded down
kernel(problem.a, problem.b, c, m, n, k, grid=short, block=(edge, edge))
ct.facts(
    "C of 100 x 70 with blocks of 32 x 32, the grid rounded down",
    {
        "unwritten, predicted": m * n - m // edge * edge * (n // edge * edge),
        "unwritten, counted": int(np.isnan(c.get()).sum()),
    },
)

# %% [markdown]
# Right results, compared in four ways: by == with the CPU's loop and with the
# product of NumPy, with a fixed tolerance, and with the bound.

# %% equality-data
terms = 16384


def whole_numbers(m, n, k):
    rng = ct.rng(3)
    a, b = (rng.integers(0, 100, shape) for shape in ((m, k), (k, n)))
    return a.astype("float32"), b.astype("float32")


def fractions(m, n, k):
    rng = ct.rng(4)
    return rng.random((m, k), "float32"), rng.random((k, n), "float32")


def by_loop(a, b):
    """The three loops, faster: each product rounded to fp32, then added."""
    c = np.zeros((len(a), b.shape[1]), "float32")
    for i in range(a.shape[1]):
        c += a[:, i, None] * b[i]
    return c


def compare(a, b):
    """How many elements of a right product each comparison refuses."""
    problem = Matmul(data=(a, b))
    problem.launcher(LADDER["naive_columns"])()
    got, (exact, bound) = problem.c.get(), problem.reference
    off = np.abs(got[problem.rows] - exact)
    return {
        "elements": off.size,
        "not == the loop": int((got != by_loop(a, b))[problem.rows].sum()),
        "not == NumPy": int((got != a @ b)[problem.rows].sum()),
        "off by more than 0.0001": int((off > 1e-4).sum()),
        "off by more than the bound": int((off > bound).sum()),
    }


# %% equality
ct.table(
    "elements refused, of a right product",
    {
        "whole numbers, k = 256": compare(*whole_numbers(64, 64, 256)),
        "whole numbers, k = 16384": compare(*whole_numbers(64, 64, terms)),
        "fractions, k = 256": compare(*fractions(64, 64, 256)),
        "fractions, k = 16384": compare(*fractions(64, 64, terms)),
    },
    corner="data",
)
