# ---
# jupyter:
#   cudatut:
#     title: {en: "FP8: why a fast sum of 16384 products is nearer than one of 4096", zh: "FP8：16384 项的快速求和为何比 4096 项更准"}
#     requires: sm_90a
#     timeout_s: 120
#     sizes:
#       DEPTH: [16384, 768]
#       PARTS: [[1, 2, 3, 4, 5, 6, 7, 8], [1, 3]]
#       SHAPES: [[[128, 256], [1024, 1024], [4096, 4096]], [[128, 256]]]
# ---

# %% [markdown]
# With fast accumulation PyTorch's sums of 16384 positive products are nearer to
# the exact ones than its sums of 4096. If the library splits such a depth among
# several blocks, each sum is shorter, and the parts are added in fp32. Our own
# kernel with one level of sums can do the same by hand. The prediction: with
# some number of parts its error is that of PyTorch, and for matrices that fill
# the GPU the library does not split, so that its results are ours.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.numbers import e4m3
from cudatut.book.tensor.gemm import fp8_product as fp8
from cudatut.gpu import launched

DEPTH = 16384
ROWS, COLUMNS = 128, 256


def cut(scaled, begin, end):
    """The same matrix with some of its columns."""
    codes = np.ascontiguousarray(scaled.codes.get()[:, begin:end])
    return fp8.Scaled(ct.to_device(codes), scaled.scales, scaled.by)


def exact(a, b, rows, columns):
    """Some rows and columns of A B^T of what codes and scales stand for."""
    scale = float(a.scales.get()[0]) * float(b.scales.get()[0])
    x, y = (e4m3.from_e4m3(one.codes.get()[at].copy())
            for one, at in ((a, rows), (b, columns)))  # fmt: skip
    return scale * (x.astype("float64") @ y.astype("float64").T)


def error(got, want):
    """In % of the typical size, as on the page."""
    typical = np.sqrt(np.mean(want**2))
    return 100 * float(np.sqrt(np.mean((got - want) ** 2)) / typical)


def one_level(a, b):
    c = ct.empty((len(a.codes), len(b.codes)), "float32")
    fp8.prepare(a, b, c, 1)()
    return c.get()


def fast(a, b):
    """PyTorch's results and the kernels that it launches; None without it."""
    c = ct.empty((len(a.codes), len(b.codes)), "float32")
    run = fp8.rival(a, b, c, True)
    if not run:
        return None, []
    ct.poison(c)
    run()
    return c.get(), launched.kernels_of(run) or []


# %% check
# Whole numbers are exact in every step, also in parts.
rng = ct.rng(1)
host = [rng.integers(-2, 3, (rows, 768)) for rows in (ROWS, COLUMNS)]
ones = ct.to_device(np.ones(1, "float32"))
whole = [
    fp8.Scaled(ct.to_device(e4m3.to_e4m3(x.astype("float64"))), ones, "tensor")
    for x in host
]
total = sum(one_level(*(cut(x, i, i + 256) for x in whole))
            for i in range(0, 768, 256))  # fmt: skip
ct.check(total, host[0] @ host[1].T, name="three parts, whole numbers", rtol=0)

# %% parts
# The same numbers as in the table of errors.
PARTS = (1, 2, 3, 4, 5, 6, 7, 8)
rng = ct.rng(DEPTH)
host = rng.random((ROWS, DEPTH)), rng.random((COLUMNS, DEPTH))
a, b = (fp8.quantize(ct.to_device(x.astype("float32"))) for x in host)
everything = slice(None), slice(None)
want = exact(a, b, *everything)
theirs, names = fast(a, b)
table = {}
for count in PARTS:
    step = 128 * ct.cdiv(ct.cdiv(DEPTH, 128), count)
    ours = np.zeros((ROWS, COLUMNS), "float32")
    for begin in range(0, DEPTH, step):
        end = min(begin + step, DEPTH)
        ours += one_level(cut(a, begin, end), cut(b, begin, end))
    row = {"error": error(ours, want)}
    if theirs is not None:
        row["the same bits as PyTorch"] = 100 * float(np.mean(ours == theirs))
    table[f"{count} parts" if count > 1 else "1 part"] = row
if theirs is not None:
    table["PyTorch, fast"] = {"error": error(theirs, want)}
ct.table(
    f"one level of sums in parts, numbers from 0 to 1, k = {DEPTH}",
    table,
    corner="depth",
    units=dict.fromkeys(table["1 part"], "%"),
)

# %% shapes
SHAPES = ((128, 256), (1024, 1024), (4096, 4096))
table, launches = {}, {}
for m, n in SHAPES:
    rng = ct.rng(m)
    a, b = (
        fp8.quantize(ct.to_device(rng.random((rows, DEPTH), "float32")))
        for rows in (m, n)
    )
    some = slice(0, m, ct.cdiv(m, 64)), slice(0, n, ct.cdiv(n, 64))
    want = exact(a, b, *some)
    ours, (theirs, names) = one_level(a, b), fast(a, b)
    row = {"one level": error(ours[some], want)}
    if theirs is not None:
        row["PyTorch, fast"] = error(theirs[some], want)
        row["the same bits"] = 100 * float(np.mean(ours == theirs))
        row["kernels"] = len(names)
        split = any("splitk" in name.lower() for name in names)
        row["splitK in a name"] = "yes" if split else "no"
        launches[f"{m} x {n} x {DEPTH}"] = names
    table[f"{m} x {n}"] = row
ct.table(
    f"by the shape of C, k = {DEPTH}",
    table,
    corner="m x n",
    units={
        name: "%"
        for name in ("one level", "PyTorch, fast", "the same bits")
        if name in row
    },
)
for shape, names in launches.items():
    print(shape, *names, sep="\n  ")
