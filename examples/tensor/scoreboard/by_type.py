# ---
# jupyter:
#   cudatut:
#     title: {en: "Types on tensor cores", zh: "张量核心上的各种类型"}
#     requires: sm_90a
#     timeout_s: 240
#     sizes: {SIDES: [[4096, 8192], [272]]}
# ---

# %% [markdown]
# Products of bf16, fp16, TF32 and e4m3: ours, cuBLAS, and the fastest that
# cublasLt offers. B lies as n x k, as weights do, but for bf16 and fp16, which
# take it as k x n.

# %% setup
from cudatut.book.rivals import cublas_types, cublaslt
from cudatut.book.tensor.gemm import fp8_product as fp8
from cudatut.book.tensor.gemm import gemm
import numpy as np
from cudatut.book.tensor.gemm import tf32_product as tf32
from cudatut.book.numbers.bf16 import to_bf16
from cudatut.book.tensor.ladder.ladder import LADDER, Gemm, cublas

import cudatut as ct

SIDES = (4096, 8192)


def sample(rows, whole=False, seed=0):
    """A random matrix in fp32; of whole numbers, from -4 to 4."""
    rng = ct.rng(seed)
    if whole:
        return rng.integers(-4, 5, rows).astype("float32")
    return rng.random(rows, "float32") * np.float32(2) - np.float32(1)


# %% [markdown]
# TF32 and fp16 are new here: right before fast. Whole numbers allow no error
# at all, but that fp16 rounds its results.

# %% check
for m, n, k in ((1, 1, 4), (130, 77, 36), (520, 1032, 704), (300, 70, 4000)):
    for turned in (True, False):
        x, y = sample((m, k), True), sample((n, k), True, 1)
        b = y if turned else np.ascontiguousarray(y.T)
        c = ct.empty((m, n), "float32")
        tf32.prepare(ct.to_device(x), ct.to_device(b), c, transpose_b=turned)()
        how = "n x k" if turned else "k x n"
        exact = x.astype("float64") @ y.T
        ct.check(c, exact, name=f"TF32, {m} x {n} x {k}, B {how}", rtol=0)
x, y = sample((1000, 2048)), sample((1000, 2048), seed=1)
x64, y64 = x.astype("float64"), y.astype("float64")
c = ct.empty((1000, 1000), "float32")
tf32.prepare(ct.to_device(x), ct.to_device(y), c, transpose_b=True)()
bound = tf32.error_bound(2048) * float((abs(x64) @ abs(y64).T).max())
ct.check(c, x64 @ y64.T, name="TF32, random", rtol=0, atol=bound)
for m, n, k in ((1, 1, 1), (127, 255, 63), (520, 1032, 704)):
    x, y = sample((m, k), True), sample((k, n), True, 1)
    a, b = (ct.to_device(one.astype("float16")) for one in (x, y))
    c = ct.empty((m, n), "float16")
    ct.poison(c)
    gemm.prepare(a, b, c)()
    rounded = (x @ y).astype("float16")
    ct.check(c, rounded, name=f"fp16, {m} x {n} x {k}", rtol=0)

# %% [markdown]
# The contests.

# %% setup-contests
rates = {}


def contest(name, side, runs, rounds=25):
    """Time them, and keep their rates."""
    timed = ct.bench(
        runs,
        flops=2 * side**3,
        rounds=rounds,
        name=f"{name}, n = {side}",
    )
    if not ct.tool.running():
        rates[f"{name}, {side}"] = {row.name: row.value for row in timed.rows}


# %% bf16
for side in SIDES:
    one = Gemm(side, side, side)
    one.check(LADDER["final"])
    contest(
        "bf16",
        side,
        {
            "ours": one.launcher(LADDER["final"]),
            **one.vendors(),
            "cublasLt": cublaslt.fastest(one.a, one.b, one.c, "bf16"),
        },
    )

# %% fp16
for side in SIDES:
    a, b = (
        ct.to_device(sample((side, side), seed=seed).astype("float16"))
        for seed in (0, 1)
    )
    c = ct.empty((side, side), "float16")
    contest(
        "fp16",
        side,
        {
            "ours": gemm.prepare(a, b, c),
            "cuBLAS": cublas(a, b, c),
            "cublasLt": cublaslt.fastest(a, b, c, "fp16"),
        },
    )

# %% tf32
for side in SIDES:
    a, b = (ct.to_device(sample((side, side), seed=seed)) for seed in (0, 1))
    c = ct.empty((side, side), "float32")
    contest(
        "TF32",
        side,
        {
            "ours": tf32.prepare(a, b, c, transpose_b=True),
            "cuBLAS": cublas_types.tf32(a, b, c, transpose_b=True),
            "cublasLt": cublaslt.fastest(a, b, c, "tf32", transpose_b=True),
            "ours, B is k x n": tf32.prepare(a, b, c),
            "cuBLAS, B is k x n": cublas_types.tf32(a, b, c),
        },
    )

# %% fp8
for side in SIDES:
    made = []
    for seed in (0, 1):  # as in fp8.py: the numbers decide about the power
        numbers = ct.rng(seed).standard_normal((side, side), dtype="float32")
        made.append(fp8.quantize(ct.to_device(to_bf16(numbers))))
    a, b = made
    c = ct.empty((side, side), "uint16")
    for name, levels, fast in (("fast e4m3", 1, True), ("e4m3", 2, False)):
        contest(
            name,
            side,
            {
                "ours": fp8.prepare(a, b, c, levels),
                "cuBLAS": fp8.rival(a, b, c, fast),
                "cublasLt": cublaslt.fastest(
                    a.codes,
                    b.codes,
                    c,
                    "e4m3",
                    transpose_b=True,
                    scales=(a.scales, b.scales),
                    fast=fast,
                ),
            },
            rounds=50,
        )

# %% [markdown]
# All of them in one table.

# %% types
if rates:
    columns = ("ours", "cuBLAS", "cublasLt")
    ct.table(
        "rates by type",
        {
            name: {column: row.get(column) for column in columns}
            | {
                "times cuBLAS": row["ours"] / row["cuBLAS"]
                if row.get("cuBLAS")
                else None
            }
            for name, row in rates.items()
        },
        corner="type, m = n = k",
        units=dict.fromkeys(columns, "TFLOP/s"),
    )
