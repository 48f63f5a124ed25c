# ---
# jupyter:
#   cudatut:
#     title: {en: "Precision", zh: "精度"}
#     requires: sm_80
#     timeout_s: 240
#     sizes:
#       n: [4096, 128]
#       DEPTHS: [[16, 64, 256, 1024, 4096, 16384, 65536], [16, 64]]
#       SHAPES: [[31, 33, 7, 257, 260, 132, 128, 128, 64, 5, 3, 0], [31, 33, 7]]
# ---

# %% [markdown]
# The types that tensor cores multiply. First one product in four ways, and how
# far each is from the exact result.

# %% program
import numpy as np

import cudatut as ct

m, n, k = 200, 300, 1000
a = ct.rng(0).standard_normal((m, k)).astype("float32")
b = ct.rng(1).standard_normal((k, n)).astype("float32")
exact = a.astype("float64") @ b.astype("float64")
on_gpu = ct.to_device(a), ct.to_device(b)

for ways in ("Bf16, 1, false", "Tf32, 1, false", "Tf32, 2, false",
             "Tf32, 2, true"):  # fmt: skip
    name = f"typed_product<{ways}>"
    kernel = ct.Kernel("tensor/precision/typed_product.cu", name)
    c = ct.empty((m, n), "float32")
    grid = ct.cdiv(n, 128), ct.cdiv(m, 128)
    kernel(*on_gpu, c, m, n, k, grid=grid, block=256)
    print(f"{ways:16} largest error {abs(c.get() - exact).max():.0e}")

# %% setup
import math

from cudatut.book.rivals import cublas_types
from cudatut.book.numbers.formats import FORMATS

from cudatut.book.published.gemm import ladder as GEMM

# --8<-- [start:ways]
# Name on the page -> instance of the kernel.
WAYS = {
    "TF32": "Tf32, 1, false",
    "fp16": "Fp16, 1, false",
    "bf16": "Bf16, 1, false",
    "3 TF32": "Tf32, 2, false",
    "3 TF32, added outside": "Tf32, 2, true",
    "3 bf16, added outside": "Bf16, 2, true",
    "6 bf16, added outside": "Bf16, 3, true",
}
# --8<-- [end:ways]
SOURCE = "tensor/precision/typed_product.cu"
names = {way: f"typed_product<{instance}>" for way, instance in WAYS.items()}
ct.compile_ahead([(SOURCE, name) for name in names.values()])
kernels = {way: ct.Kernel(SOURCE, name) for way, name in names.items()}


def multiply(way, a, b, c):
    """C = A B of fp32 matrices on the GPU."""
    (m, k), n = a.shape, b.shape[1]
    grid = ct.cdiv(n, 128), ct.cdiv(m, 128)
    kernels[way](a, b, c, m, n, k, grid=grid, block=256)


def product(way, a, b):
    """The same from arrays of the host; "fp32" is the book's kernel `tiled`,
    one FMA after the other."""
    if way == "fp32":
        run = GEMM.BASICS.Matmul(data=(a, b))
        run.launcher(GEMM.BASICS.LADDER["tiled"])()
        return run.c.get()
    c = ct.empty((a.shape[0], b.shape[1]), "float32")
    multiply(way, ct.to_device(a), ct.to_device(b), c)
    return c.get()


# %% formats
SHOWN = ("fp32", "TF32", "bf16", "fp16", "e5m2", "e4m3")
ct.table(
    "formats",
    {
        name: {
            "bits": FORMATS[name].bits,
            "exponent": FORMATS[name].exponent,
            "mantissa": FORMATS[name].mantissa,
            "largest number": f"{FORMATS[name].largest:.5g}",
            "smallest normal": f"{FORMATS[name].smallest:.2g}",
            "step at 1": f"{FORMATS[name].step:.2g}",
        }
        for name in SHOWN
    },
    corner="type",
)

# %% [markdown]
# How a tensor core adds: chosen products, of which one instruction makes a sum.

# %% adding
ADDS = "tensor/precision/precision.cu"
PRODUCTS = {"fp16": 16, "bf16": 16, "TF32": 8}
ADD = {"fp16": "Fp16", "bf16": "Bf16", "TF32": "Tf32"}


def add_up(way, cases):
    """c + the sum of x y, for cases (c, [(x, y), ...]); places that a case does
    not use are zero. As multiples of an fp32 step at 1, 2^-23."""
    width = PRODUCTS.get(way, 16)
    x, y = np.zeros((2, len(cases), width), "float32")
    for row, (_, pairs) in enumerate(cases):
        for column, pair in enumerate(pairs):
            x[row, column], y[row, column] = pair
    c = np.float32([first for first, _ in cases])
    out = ct.empty(len(cases), "float32")
    arrays = [ct.to_device(array) for array in (x, y, c)]
    if way == "FMA":
        kernel = ct.Kernel(ADDS, "add_up_fma")
        grid = ct.cdiv(len(cases), 32)
        kernel(*arrays, out, len(cases), width, grid=grid, block=32)
    else:
        kernel = ct.Kernel(ADDS, f"add_up<{ADD[way]}>")
        kernel(*arrays, out, grid=len(cases), block=32)
    return out.get().astype("float64") * 2**23


def tiny(power):
    """Two numbers of any type whose product is 2^-power."""
    return 2.0 ** -(power // 2), 2.0 ** -(power - power // 2)


NEARLY = (1.5 * 2.0**-12, 2.0**-12)  # 3/4 of a step
LESS = (-1.5 * 2.0**-12, 2.0**-12)
step = {"exact": (0.75, -0.75)}
for way in ("FMA", *ADD):
    up, down = add_up(way, [(1, [NEARLY]), (-1, [LESS])])
    step[way] = up - 2**23, down + 2**23
ct.table(
    "steps from 1 and from -1",
    {
        way: {"1 + 3/4 step": up, "-1 - 3/4 step": down}
        for way, (up, down) in step.items()
    },
    corner="added by",
)

# %% width
# 1 + 2^-e - 1: the exact sum is 2^-e. An adder that lines all numbers up with
# the largest one keeps it down to some e.
POWERS = range(18, 31)
kept = {}
for way in ("FMA", *ADD):
    found = add_up(way, [(0, [(1, 1), tiny(e), (-1, 1)]) for e in POWERS])
    exact_sum = [2.0 ** (23 - e) for e in POWERS]
    whole = [e for e, got, want in zip(POWERS, found, exact_sum) if got == want]
    kept[way] = max(whole, default=0)

# 1, -1 and, further and further behind them, 2^-30: it survives where it is
# added in another step than these two.
together = {}
for way in ADD:
    width = PRODUCTS[way]
    cases = []
    for place in range(2, width):
        between = [(0, 0)] * (place - 2)
        cases.append((0, [(1, 1), (-1, 1), *between, tiny(30)]))
    survives = add_up(way, cases) != 0
    together[way] = 2 + int(np.argmax(survives)) if survives.any() else width
ct.table(
    "the adder",
    {
        way: {
            "2^-e is kept to e =": kept[way],
            "products added at once": together.get(way, 1),
        }
        for way in ("FMA", *ADD)
    },
    corner="added by",
)

# %% [markdown]
# Products of every way against float64: right, then how the error grows.

# %% check
# Parts of a factor: what rounding leaves over of it, and of a product.
LEFT = {"TF32": 2.0**-11, "fp16": 2.0**-11, "bf16": 2.0**-8}
LEFT |= {"3 TF32": 2.0**-21, "3 TF32, added outside": 2.0**-21}
LEFT |= {"3 bf16, added outside": 2.0**-15, "6 bf16, added outside": 2.0**-21}
SHAPES = (31, 33, 7, 257, 260, 132, 128, 128, 64, 5, 3, 0)
for shape in zip(SHAPES[::3], SHAPES[1::3], SHAPES[2::3]):
    rows, columns, depth = shape
    rng = ct.rng(sum(shape))
    x = rng.standard_normal((rows, depth)).astype("float32")
    y = rng.standard_normal((depth, columns)).astype("float32")
    size = np.max(abs(x).astype("float64") @ abs(y), initial=0.0)
    for way in WAYS:
        got = product(way, x, y)
        atol = size * (2.1 * LEFT[way] + 4 * depth * 2.0**-24) + 1e-30
        ct.check(
            got,
            x.astype("float64") @ y,
            name=f"{way}, {rows} x {columns} x {depth}",
            rtol=0.0,
            atol=atol,
        )

# %% by-depth
# Sums of positive numbers, of which the error is not hidden by cancellation.
DEPTHS = (16, 64, 256, 1024, 4096, 16384, 65536)
LINES = ("fp32", "TF32", "3 TF32", "3 TF32, added outside", "bf16", "e4m3")
LINES += ("fp16", "e5m2", "6 bf16, added outside")
errors = {line: [] for line in LINES}
for depth in DEPTHS:
    rng = ct.rng(depth)
    x = rng.random((64, depth), "float32")
    y = rng.random((depth, 64), "float32")
    want = x.astype("float64") @ y
    for line in LINES:
        if line in ("e4m3", "e5m2"):
            # Every number of these is one of fp16, in which we multiply them.
            narrow = [FORMATS[line].round(z).astype("float32") for z in (x, y)]
            got = product("fp16", *narrow)
        else:
            got = product(line, x, y)
        worst = np.max(abs(got - want) / want)
        errors[line].append((depth, max(float(worst), 2.0**-30)))
ct.series(
    "largest relative error",
    ("k", ""),
    ("error", ""),
    errors,
    foreground=list(LINES[:6]),
)

# %% errors
# Some of it as a table.
ct.table(
    "largest relative error",
    {
        line: {
            f"k = {depth}": f"{error:.1e}"
            for depth, error in errors[line]
            if depth in (DEPTHS[0], DEPTHS[-1], 1024)
        }
        for line in LINES
    },
    corner="added by",
)

# %% rounding-of-factors
# What is left without the tensor core: factors rounded, products and sums in
# float64. Errors of single factors cancel in a long sum.
depth = DEPTHS[-1]
rng = ct.rng(depth)
x, y = rng.random((64, depth), "float32"), rng.random((depth, 64), "float32")
want = x.astype("float64") @ y
alone = {}
for line in ("TF32", "bf16", "e4m3"):
    form = FORMATS[line]
    got = form.round(x) @ form.round(y)
    alone[line] = {
        "factors rounded": f"{np.max(abs(got - want) / want):.1e}",
        "on the tensor cores": f"{errors[line][-1][1]:.1e}",
    }
ct.table(f"largest relative error, k = {depth}", alone, corner="type")

# %% [markdown]
# fp32 from several products, beside fp32.

# %% bench
n = 4096
problem = GEMM.Gemm(n, n, n)
a, b, c = problem.a, problem.b, problem.c
fp32 = {name: problem.launcher(GEMM.LADDER[name]) for name in ("final",)}
ours = {
    way: lambda way=way: multiply(way, a, b, c)
    for way in (
        "TF32",
        "3 TF32",
        "3 TF32, added outside",
        "3 bf16, added outside",
        "6 bf16, added outside",
    )
}
rivals = {
    "cuBLAS, fp32": ct.vendor.gemm(a, b, c),
    "cuBLAS, TF32": cublas_types.tf32(a, b, c),
}
times = ct.bench({**fp32, **ours, **rivals}, name=f"{n} x {n} x {n}")

# %% speeds
expected, _ = problem.reference
rows = problem.rows
size = abs(problem.host_a[rows]).astype("float64") @ abs(problem.host_b)
speeds = {}
for name, run in {**fp32, **ours, **rivals}.items():
    if not run:
        continue
    ct.poison(c)
    run()
    off = float(np.max(abs(c.get()[rows] - expected) / size))
    took = times[name].median_us
    speeds[name] = {
        "time": took,
        "rate": problem.flops / took / 1e6,
        "error": f"{off:.1e}",
        "right bits": -math.log2(off),
    }
if not ct.tool.running():
    ct.table(
        f"n = {n}",
        speeds,
        corner="product",
        units={"time": "us", "rate": "TFLOP/s"},
    )

# %% [markdown]
# Where ten bits of mantissa lose the answer: squared distances of points by a
# product, |x - y|^2 = |x|^2 + |y|^2 - 2 x y.

# %% distances
points = 100 + ct.rng(7).random((256, 16), "float32") * 2 - 1
exact_points = points.astype("float64")
apart = exact_points[:, None] - exact_points
truth = np.sum(apart**2, axis=2)
others = ~np.eye(len(points), dtype=bool)


def squared_distances(points, way):
    inner = product(way, points, np.ascontiguousarray(points.T))
    inner = inner.astype("float64")  # the rest is exact
    squares = np.sum(points.astype("float64") ** 2, axis=1)
    return squares[:, None] + squares - 2 * inner


rows = {}
for way in ("fp32", "TF32", "bf16", "3 TF32"):
    found = squared_distances(points, way)
    rows[way] = {
        "largest error": float(abs(found - truth).max()),
        "negative distances": int((found[others] < 0).sum()),
        "right nearest point": int(
            np.sum(
                np.argmin(np.where(others, found, np.inf), axis=1)
                == np.argmin(np.where(others, truth, np.inf), axis=1)
            )
        ),
    }
ct.facts(
    "256 points",
    {
        "mean of the squared distances": float(truth[others].mean()),
        "products of coordinates add up to about": float(
            np.mean(exact_points @ exact_points.T)
        ),
    },
)

# %% wrong
ct.table("squared distances of 256 points", rows, corner="product")
