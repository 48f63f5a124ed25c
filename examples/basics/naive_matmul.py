# ---
# jupyter:
#   cudatut:
#     title: {en: "Matrix multiplication by hand", zh: "手写矩阵乘法"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# One thread per element of C, in two mappings: operations and bytes counted first, then checked, profiled and timed.

# %% setup
import numpy as np
from ladder import LADDER, Matmul, error_bound

import cudatut as ct

# The profiler looks at the first launch, which it sees at full size; the sanitizers get a small one.
side = ct.size(1024, 96, profiled=1024)
large = ct.size(4096, 96)

# %% check
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

# %% predict
n = 4096
flops, bytes_least = 2 * n**3, 3 * 4 * n**2
bandwidth, fma = ct.limits.bandwidth(), ct.limits.fma()
ct.facts(
    "C = A B, 4096 x 4096",
    {
        "operations": (flops / 1e9, "GFLOP"),
        "bytes, each element once": (bytes_least / 1e6, "MB"),
        "bytes, with the old C": (4 * 4 * n**2 / 1e6, "MB"),
        "loads of the naive kernels": 2 * n**3,
        "bytes of these loads": (4 * 2 * n**3 / 1e9, "GB"),
    },
)
ct.facts(
    "bounds",
    {
        "arithmetic": (flops / fma / 1e9, "ms"),
        "memory, each element once": (bytes_least / bandwidth / 1e6, "ms"),
        "memory, each load": (4 * 2 * n**3 / bandwidth / 1e6, "ms"),
        "balance of this GPU": (1e3 * fma / bandwidth, "FLOP/B"),
        "intensity, each element once": (flops / bytes_least, "FLOP/B"),
        "intensity, each load": (flops / (4 * 2 * n**3), "FLOP/B"),
    },
)

# %% resources
for name in ("naive_rows", "naive_columns"):
    ct.show(LADDER[name].compile().resources(block=(32, 32)))

# %% edges
m, n, k, tile = 100, 70, 50, 32
grid = ct.cdiv(n, tile), ct.cdiv(m, tile)
problem = Matmul(m, n, k)
kernel = LADDER["naive_columns"].compile()
c = ct.to_device(np.full((m, n), np.nan, "float32"))
kernel(problem.a, problem.b, c, m, n, k, grid=(n // tile, m // tile), block=(tile, tile))
ct.facts(
    "C of 100 x 70 in tiles of 32 x 32",
    {
        "grid": f"{grid[0]} x {grid[1]}",
        "largest blockIdx": f"{grid[0] - 1}, {grid[1] - 1}",
        "threads": grid[0] * grid[1] * tile**2,
        "threads without an element": grid[0] * grid[1] * tile**2 - m * n,
        "rounded down: elements that stay unwritten, predicted": m * n
        - (m // tile * tile) * (n // tile * tile),
        "rounded down: elements that stay unwritten, counted": int(np.isnan(c.get()).sum()),
    },
)

# %% first-warp
k = n = 1024
lane = np.arange(32)
for name, row, column in (("naive_rows", lane, 0 * lane), ("naive_columns", 0 * lane, lane)):
    a, b, c = row * k, column, row * n + column  # at i = 0; the next i moves all lanes alike
    ct.facts(
        f"{name}: the first warp, k = n = 1024",
        {
            "elements of A": len(np.unique(a)),
            "words from lane to lane in A": int(a[1] - a[0]),
            "elements of B": len(np.unique(b)),
            "words from lane to lane in B": int(b[1] - b[0]),
            "words from lane to lane in C": int(c[1] - c[0]),
        },
    )

# %% counters
counted = ct.profile(
    "basics/naive_matmul",
    kernel="matmul_naive_columns",
    metrics=[
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "dram__bytes_read.sum",
        "gpu__time_duration.sum",
    ],
)

# %% counted
if counted:
    value = {name: metric["value"] for name, metric in counted.metrics.items()}
    ffma = value["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"]
    requests = value["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"]
    ct.facts(
        "naive_columns, 1024 x 1024 x 1024",
        {
            "predicted multiply-adds": 1024**3,
            "measured multiply-adds": ffma,
            "predicted loads per result": 2 * 1024,
            "measured loads per result": 32 * requests / 1024**2,
            "predicted bytes, each element once": (2 * 4 * 1024**2 / 1e6, "MB"),
            "measured bytes from memory": (value["dram__bytes_read.sum"] / 1e6, "MB"),
        },
    )
    ct.claim(
        id="gemm-operations",
        source="SGEMM worklog; CUDATutorial 00",
        statement={
            "en": "A product of m x k and k x n matrices takes 2 m n k operations (4096: 137 GFLOP)",
            "zh": "m×k 与 k×n 矩阵相乘需要 2mnk 次运算（4096：137 GFLOP）",
        },
        predicted=2 * 1024**3 / 1e9,
        measured=2 * ffma / 1e9,
        unit="GFLOP, at 1024",
        verdict="confirmed" if ffma == 1024**3 else "refuted",
    )

# %% bench
for name in ("naive_rows", "naive_columns"):
    LADDER.check(name, [{"m": large, "n": large, "k": large}])
times = LADDER.bench(
    LADDER.upto("naive_columns"), m=large, n=large, k=large, rounds=3, name="4096 x 4096 x 4096"
)

# %% vendor
problem = Matmul(large, large, large)
expected, _ = problem.reference


def largest_error(run):
    """Of the sampled rows, against fp64."""
    ct.poison(problem.c)
    run()
    return float(np.abs(problem.c.get()[problem.rows] - expected).max())


ours = largest_error(problem.launcher(LADDER["naive_columns"]))
vendor = problem.vendors()["cuBLAS"]  # None without the library
cublas = largest_error(vendor) if vendor else float("nan")
rounded = [
    array.view("uint32") & np.uint32(0xFFFFE000) for array in (problem.host_a, problem.host_b)
]
a, b = (
    array.view("float32").astype("float64") for array in rounded
)  # 10 bits of mantissa, as in TF32
ct.facts(
    "largest error of an element, k = 4096",
    {
        "naive_columns": ours,
        "cuBLAS": cublas,
        "operands cut to TF32, summed exactly": float(np.abs(a[problem.rows] @ b - expected).max()),
    },
)
if vendor:
    ct.check(np.array([cublas]), np.zeros(1), name="cuBLAS is fp32", rtol=0, atol=10 * ours)

# %% compared
slow, fast = times["naive_rows"], times["naive_columns"]
ct.facts(
    "predicted and measured",
    {
        "bound by arithmetic": (flops / fma / 1e9, "ms"),
        "bound, if each load went to memory": (4 * flops / bandwidth / 1e6, "ms"),
        "measured, naive_rows": (slow.median_us / 1e3, "ms"),
        "measured, naive_columns": (fast.median_us / 1e3, "ms"),
        "bytes per second of loads, naive_rows": (4 * flops / slow.median_us / 1e3, "GB/s"),
        "bytes per second of loads, naive_columns": (4 * flops / fast.median_us / 1e3, "GB/s"),
    },
)

# %% error
problem = Matmul(side, side, side)
problem.launcher(LADDER["naive_columns"])()
got, (expected, bound) = problem.c.get().astype("float64"), problem.reference
ct.facts(
    "error of fp32, k = 1024",
    {
        "bound": bound,
        "largest error": float(np.abs(got - expected).max()),
        "largest error / bound": float(np.abs(got - expected).max() / bound),
        "g for k products": error_bound(side),
    },
)


# %% equality
def by_loop(a, b):
    """The product as a loop on the CPU makes it: each product rounded to fp32, then added, i upwards."""
    c = np.zeros((len(a), b.shape[1]), "float32")
    for i in range(a.shape[1]):
        c += a[:, i, None] * b[i]
    return c


def unequal(a, b, reference):
    """Elements of A B that differ between this GPU kernel and the reference in fp32: both are correct."""
    product = Matmul(data=(a, b))
    product.launcher(LADDER["naive_columns"])()
    return int((product.c.get() != reference(a, b)).sum())


def whole_numbers(m, n, k):
    """As in the tutorial: whole numbers from 0 to 99."""
    rng = ct.rng(3)
    return rng.integers(0, 100, (m, k)).astype("float32"), rng.integers(0, 100, (k, n)).astype(
        "float32"
    )


def fractions(m, n, k):
    rng = ct.rng(4)
    return rng.random((m, k), "float32"), rng.random((k, n), "float32")


shape, deep = (256, 256, 256), (64, 64, ct.size(1 << 14, 256))
results = {
    "whole numbers, k = 256": unequal(*whole_numbers(*shape), by_loop),
    "whole numbers, k = 16384": unequal(*whole_numbers(*deep), np.matmul),  # sums in another order
    "fractions, k = 256": unequal(*fractions(*shape), by_loop),
}
ct.facts(
    "elements that are not ==",
    {
        "largest sum, k = 256": 256 * 99 * 99,
        "2 ** 24": 2**24,
        **results,
        "of, k = 256": 256 * 256,
        "of, k = 16384": 64 * 64,
    },
)
ct.claim(
    id="exact-compare",
    source="CUDATutorial 06",
    statement={
        "en": "Comparing with == tells a right fp32 product from a wrong one",
        "zh": "用 == 比较，就能区分 fp32 乘积算得对不对",
    },
    predicted=0,
    measured=results["fractions, k = 256"],
    unit="right elements that are not ==",
    verdict="refuted" if results["fractions, k = 256"] else "confirmed",
)
for name in ("naive_rows", "naive_columns"):
    LADDER.check(name, [{"m": 33, "n": 65, "k": 1000, "integers": True}])
