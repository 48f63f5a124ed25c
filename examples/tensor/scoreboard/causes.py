# ---
# jupyter:
#   cudatut:
#     title: {en: "Scoreboard of tensor cores: bits that are cut off, and bits that cost", zh: "张量核心记分牌：被截断的位，耗电的位"}
#     requires: sm_90a
#     timeout_s: 120
#     sizes:
#       DEPTH: [2048, 64]
#       side: [4096, 256]
# ---

# %% [markdown]
# A factor of TF32 keeps 11 significant bits of fp32's 24. Our kernel hands the
# tensor cores fp32 numbers as they are. Do these round the factors, or cut them
# off? And cuBLAS? Whoever cuts gets the same bits from factors that were cut
# before, and others from factors that were rounded before. The prediction: both
# cut, so the error has a direction, and is larger than that of rounding.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.rivals import cublas_types
from cudatut.book.tensor.gemm import gemm
from cudatut.book.tensor.gemm import tf32_product as tf32
from cudatut.book.tensor.ladder.ladder import cublas

DEPTH = 2048
M, N = 256, 512


def cut(x):
    """Without the 13 bits that TF32 lacks."""
    return (x.view("uint32") & np.uint32(0xFFFFE000)).view("float32")


def rounded(x):
    """To the nearest, halves away from zero, as `cvt.rna.tf32.f32` does."""
    bits = x.view("uint32") + np.uint32(0x1000)
    return (bits & np.uint32(0xFFFFE000)).view("float32")


BEFORE = {"as they are": lambda x: x, "cut": cut, "rounded": rounded}
WAYS = {"this book": tf32.prepare, "cuBLAS": cublas_types.tf32}


def product(way, a, b):
    """A B^T by one of the ways; None where it cannot run."""
    c = ct.empty((len(a), len(b)), "float32")
    run = WAYS[way](ct.to_device(a), ct.to_device(b), c, transpose_b=True)
    if not run:
        return None
    ct.poison(c)
    run()
    return c.get()


# %% check
# Numbers that TF32 has: nothing is lost.
a, b = (
    ct.rng(i).integers(-4, 5, (rows, DEPTH)).astype("float32")
    for i, rows in enumerate((M, N))
)
ct.check(product("this book", a, b), a @ b.T, name="whole numbers", rtol=0)
x = np.float32([1 + 2**-10 + 2**-11, 1 + 3 * 2**-12, -1 - 2**-11])
ct.check(
    np.stack([cut(x), rounded(x)]),
    np.float32([[1 + 2**-10, 1, -1], [1 + 2**-9, 1 + 2**-10, -1 - 2**-10]]),
    name="cut and rounded by hand",
    rtol=0,
)

# %% bits
rng = ct.rng(7)
factors = [rng.random((rows, DEPTH), "float32") for rows in (M, N)]
exact = factors[0].astype("float64") @ factors[1].astype("float64").T
results = {}
for way in WAYS:
    for name, change in BEFORE.items():
        got = product(way, *map(change, factors))
        if got is not None:
            results[way, name] = got
able = [way for way in WAYS if (way, "cut") in results]
ct.table(
    "results of the same bits as with the factors as they are",
    {
        way: {
            f"{name} before": 100
            * float(np.mean(results[way, name] == results[way, "as they are"]))
            for name in ("cut", "rounded")
        }
        for way in able
    },
    corner="product",
    units={"cut before": "%", "rounded before": "%"},
)

# %% error
# In % of the typical result. `in float64`: only the factors are changed. The
# mean error tells a direction: cutting makes positive products too small.
typical = np.sqrt(np.mean(exact**2))
table = {}
for name, change in BEFORE.items():
    x, y = (change(one).astype("float64") for one in factors)
    found = {"in float64": x @ y.T}
    found |= {way: results[way, name] for way in able}
    row = {}
    for way, got in found.items():
        off = (got - exact) / typical
        row[way] = 100 * float(np.sqrt(np.mean(off**2)))
    row["mean in float64"] = 100 * float(np.mean(found["in float64"] - exact))
    row["mean in float64"] /= typical
    table[name] = row
ct.table(
    f"error of TF32, numbers from 0 to 1, k = {DEPTH}",
    table,
    corner="factors",
    units=dict.fromkeys(table["cut"], "%"),
)

# %% [markdown]
# fp16 is slower than bf16, though its instruction takes as many cycles. If its
# three more bits cost power, and so the clock, then fp16 is as fast as bf16 with
# numbers whose last three bits are zero: those of bf16. That is the prediction.

# %% energy
side = 4096
host = [
    ct.rng(seed).random((side, side), "float32") * np.float32(2) - np.float32(1)
    for seed in (0, 1)
]
short = [to_bf16(x) for x in host]  # 8 significant bits
KINDS = {
    "bf16": short,
    "fp16, 11 bits": [x.astype("float16") for x in host],
    "fp16, 8 bits": [to_float(x).astype("float16") for x in short],
}
rows = np.unique(ct.rng(5).integers(0, side, 16))
runs = {}
for name, (a, b) in KINDS.items():
    c = ct.empty((side, side), a.dtype)
    arrays = ct.to_device(a), ct.to_device(b), c
    runs[name] = gemm.prepare(*arrays)
    ct.poison(c)
    runs[name]()
    got, x, y = c.get()[rows], a[rows], b
    if a.dtype == np.uint16:
        got, x, y = map(to_float, (got, x, y))
    want = x.astype("float32") @ y.astype("float32")
    ct.check(
        got.astype("float32"), want, name=name, rtol=1.02 * 2.0**-8, atol=0.01
    )
    if a.dtype == np.float16:
        runs[f"cuBLAS, {name}"] = cublas(*arrays)
timed = ct.bench(
    runs,
    flops=2 * side**3,
    rounds=100,
    name=f"bits of the numbers, n = {side}",
)

# %% energy-beside
if not ct.tool.running():
    bf16 = timed["bf16"]
    ct.table(
        "beside bf16",
        {
            row.name: {
                "rate": row.value / bf16.value,
                "clock": row.mhz / bf16.mhz if row.mhz else None,
                "cycles": row.cycles / bf16.cycles if row.cycles else None,
            }
            for row in timed.rows
        },
        corner="numbers",
        units=dict.fromkeys(("rate", "clock", "cycles"), "×"),
    )
