# ---
# jupyter:
#   cudatut:
#     title: {en: "Epilogues", zh: "尾声运算"}
#     requires: sm_90a
#     timeout_s: 240
#     sizes:
#       large: [[8192, 16384, 4096], [256, 512, 128]]
#       middle: [[8192, 4096, 4096], [256, 256, 128]]
#       small: [[1024, 1024, 1024], [128, 256, 64]]
#       DEPTHS: [[64, 256, 1024, 4096], [64, 128]]
#       side: [4096, 256]
# ---

# %% [markdown]
# What follows a product, done on its sums while they are still in registers.
# First one layer as a whole program.

# %% program
import numpy as np

import cudatut as ct

from cudatut.book.numbers import bf16
from cudatut.book.tensor.gemm import gemm
from cudatut.book.tensor.gemm import epilogue

m, n, k = 1000, 1200, 800
rng = ct.rng(0)
a, b, bias, residual = (
    bf16.to_bf16(rng.standard_normal(shape))
    for shape in ((m, k), (k, n), n, (m, n))
)
c = ct.empty((m, n), "uint16")
fused = epilogue.Epilogue(
    "gelu-tanh", ct.to_device(bias), ct.to_device(residual)
)
gemm.prepare(
    ct.to_device(a), ct.to_device(b), c, alpha=0.05, beta=1.0, epilogue=fused
)()

a, b, bias, residual = (
    bf16.to_float(x).astype("float64") for x in (a, b, bias, residual)
)
x = 0.05 * a @ b + bias
u = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
expected = 0.5 * x * (1 + np.tanh(u)) + residual
got = bf16.to_float(c.get())
ct.check(got, expected, name="one launch", rtol=2**-8, atol=1e-4)

# %% [markdown]
# By hand: the kernel that does the same after a product. It takes 16 bytes at a
# time, so `epilogue.after` counts in pieces of eight elements, of a row and of
# all of C, and checks that a row is whole pieces. A struct of 16 bytes is a
# type that no array has; its pointer takes the array of any type.

# %% launch
c_host = bf16.to_bf16(rng.standard_normal((m, n)))
product, out = ct.to_device(c_host), ct.empty((m, n), "uint16")
pieces = m * n // 8

kernel = ct.Kernel("tensor/gemm/after.cu", "after<GeluTanh>")
kernel(
    product, fused.bias, fused.residual, out, n // 8, pieces,
    grid=ct.cdiv(pieces, 256), block=256,
)  # fmt: skip

x = bf16.to_float(c_host) + bias
expected = epilogue.reference(x, "gelu-tanh") + residual
got = bf16.to_float(out.get())
ct.check(got, expected, name="launched by hand", rtol=2**-8, atol=1e-4)

# %% setup
from collections import Counter

Epilogue, to_bf16, to_float = epilogue.Epilogue, bf16.to_bf16, bf16.to_float
from cudatut.book.measure import loops
from cudatut.book.rivals import torch_rival as rivals


class Layer:
    """Random matrices, a bias and a residual, all bf16. B is small enough that
    the product has about the size of a bias."""

    def __init__(self, m, n, k):
        rng = ct.rng(m + n + k)
        shapes = {"a": (m, k), "b": (k, n), "bias": (n,), "residual": (m, n)}
        for name, shape in shapes.items():
            numbers = rng.standard_normal(shape, dtype="float32")
            if name == "b":
                numbers *= k**-0.5
            setattr(self, name, ct.to_device(to_bf16(numbers)))
        self.c = ct.empty((m, n), "uint16")
        self.out = ct.empty((m, n), "uint16")
        self.flops = 2 * m * n * k

    def fused(self, activation="gelu-tanh", residual=True, **how):
        some = Epilogue(activation, self.bias, self.residual, **how)
        return gemm.prepare(
            self.a, self.b, self.out, beta=float(residual), epilogue=some
        )

    def product(self):
        return gemm.prepare(self.a, self.b, self.c)

    def two_kernels(self, activation="gelu-tanh"):
        product = self.product()
        some = Epilogue(activation, self.bias, self.residual)
        rest = epilogue.after(self.c, self.out, some)

        def run():
            product()
            rest()

        run.out = self.out
        return run

    def torch(self, call):
        arrays = self.a, self.b, self.bias, self.residual, self.c, self.out
        return rivals.rival(call, *arrays)


def in_three(torch, a, b, bias, residual, c, out):
    """Product and bias, GELU, sum: each rounds."""

    def run():
        torch.addmm(bias, a, b, out=c)
        x = torch.nn.functional.gelu(c, approximate="tanh")
        torch.add(x, residual, out=out)

    return run


def vendor_product(torch, a, b, bias, residual, c, out):
    return lambda: torch.matmul(a, b, out=c)


def vendor_fused(torch, a, b, bias, residual, c, out):
    """cublasLt's epilogue: bias and GELU."""
    return lambda: torch._addmm_activation(bias, a, b, use_gelu=True, out=c)


def vendor_and_sum(torch, a, b, bias, residual, c, out):
    """The same, and the residual by a kernel of its own."""

    def run():
        torch._addmm_activation(bias, a, b, use_gelu=True, out=c)
        torch.add(c, residual, out=out)

    return run


# %% [markdown]
# Bytes that move beside A and B, counted in matrices of the size of C.

# %% predict
large = (8192, 16384, 4096)
MATRICES = {  # read and written, kernel by kernel
    "one kernel": (2,),  # R in, C out
    "two kernels": (1, 3),  # C out; C and R in, the result out
    "four kernels": (1, 2, 2, 3),  # product, bias, GELU, sum
}
rows, columns, depth = large
product_us = 2 * rows * columns * depth / 700e12 * 1e6
ct.table(
    f"{rows} x {columns} x {depth}, the product at 700 TFLOP/s",
    {
        way: {
            "matrices": sum(passes),
            "bytes": sum(passes) * 2 * rows * columns / 1e6,
            "at 3 TB/s": sum(passes) * 2 * rows * columns / 3e12 * 1e6,
            "beside the product": 100
            * (sum(passes) * 2 * rows * columns / 3e12 * 1e6)
            / product_us,
        }
        for way, passes in MATRICES.items()
    },
    corner="way",
    units={"bytes": "MB", "at 3 TB/s": "us", "beside the product": "%"},
)

# %% [markdown]
# Right before fast: whole numbers allow no error but the last rounding, and any
# size has to be right, whoever fetches the residual.

# %% check
for m, n, k in ((1, 1, 1), (130, 264, 72), (257, 515, 333), (300, 768, 1000)):
    rng = ct.rng(m)
    a, b, r = (rng.integers(-4, 5, shape) for shape in ((m, k), (k, n), (m, n)))
    bias = rng.integers(-8, 9, n)
    on_gpu = [ct.to_device(to_bf16(x)) for x in (a, b, bias, r)]
    for activation in ct.size(("none", "relu"), ("relu",)):
        for by_tma in (True, False):
            c = ct.empty((m, n), "uint16")
            some = Epilogue(activation, *on_gpu[2:], 0.5, by_tma)
            gemm.prepare(*on_gpu[:2], c, 2.0, -1.0, epilogue=some)()
            want = 0.5 * epilogue.reference(2 * (a @ b) + bias, activation) - r
            ct.check(
                to_float(c.get()),
                to_float(to_bf16(want)),
                name=f"{activation}, {m} x {n} x {k}",
                rtol=0,
            )

# %% [markdown]
# Each kernel rounds what it writes to bf16. Beside float64:

# %% error
small = (1024, 1024, 1024)
layer = Layer(*small)
a, b, bias, r = (
    to_float(x.get()).astype("float64")
    for x in (layer.a, layer.b, layer.bias, layer.residual)
)
want = epilogue.reference(a @ b + bias, "gelu-tanh") + r
ways = {
    "one kernel": layer.fused(),
    "two kernels": layer.two_kernels(),
    "PyTorch, two kernels": layer.torch(vendor_and_sum),
    "PyTorch, three kernels": layer.torch(in_three),
}
table = {}
for way, run in ways.items():
    if not run:
        continue
    ct.poison(layer.out)
    run()
    off = to_float(layer.out.get()) - want
    table[way] = {
        "typical": 100 * float(np.sqrt(np.mean(off**2) / np.mean(want**2))),
        "largest": float(np.abs(off).max()),
    }
    ct.check(to_float(layer.out.get()), want, name=way, rtol=2**-6, atol=2**-5)
ct.table("error", table, corner="way", units={"typical": "%"})

# %% [markdown]
# GELU where x is negative: A times the identity is A, so only GELU can be off.

# %% negative
layer = Layer(512, 512, 512)
x = to_bf16(np.linspace(-6, -1, 512**2, dtype="float32").reshape(512, 512))
layer.a, layer.b = ct.to_device(x), ct.to_device(to_bf16(np.eye(512)))
layer.bias = ct.to_device(to_bf16(np.zeros(512)))
want = epilogue.reference(to_float(x), "gelu-tanh")
ways = {
    "ours": (layer.fused(residual=False), layer.out),
    "PyTorch": (layer.torch(vendor_fused), layer.c),
}
table = {}
for way, (run, out) in ways.items():
    if not run:
        continue
    ct.poison(out)
    run()
    off = 100 * np.abs(to_float(out.get()) / want - 1)
    # Below about -5.2 a tanh that is exact in fp32 is rounded to -1.
    at = to_float(x)
    table[way] = {
        "x < -5.2": float(off[at < -5.2].max()),
        "-5.2 to -3": float(off[(at >= -5.2) & (at < -3)].max()),
        "from -3": float(off[at >= -3].max()),
    }
ct.check(to_float(layer.out.get()), want, name="ours", rtol=2**-8, atol=0)
ct.table(
    "largest error of GELU",
    table,
    corner="way",
    units={"x < -5.2": "%", "-5.2 to -3": "%", "from -3": "%"},
)

# %% [markdown]
# The times. The products alone stand first.


# %% bench
def contest(shape):
    layer = Layer(*shape)
    runs = {
        "product alone": layer.product(),
        "product alone: PyTorch": layer.torch(vendor_product),
        "bias, GELU": layer.fused(residual=False),
        "bias, GELU: PyTorch": layer.torch(vendor_fused),
        "all": layer.fused(),
        "all: two kernels": layer.two_kernels(),
        "all: PyTorch, two": layer.torch(vendor_and_sum),
        "all: PyTorch, three": layer.torch(in_three),
    }
    return ct.bench(
        runs,
        flops=layer.flops,
        rounds=25,
        name=" x ".join(map(str, shape)),
    )


times_large = contest(large)

# %% bench-middle
middle = (8192, 4096, 4096)
times_middle = contest(middle)

# %% bench-small
times_small = contest(small)

# %% [markdown]
# Who fetches the residual: the TMA, into the box that C leaves from, or each
# thread.

# %% residual
layer = Layer(*middle)
ct.bench(
    {
        "without": layer.fused(residual=False),
        "by the TMA": layer.fused(),
        "by threads": layer.fused(by_tma=False),
    },
    flops=layer.flops,
    rounds=25,
    name="the residual",
)

# %% [markdown]
# The same epilogues after products of less and less depth: what each adds to
# the product alone.

# %% depths
from cudatut.book.measure import spread

side = 4096
DEPTHS = (64, 256, 1024, 4096)
ALONE, PYTORCH = "product", "bias, GELU: PyTorch"
added, spreads = {}, {}
for k in DEPTHS:
    layer = Layer(side, side, k)
    found = spread.times(
        {
            ALONE: layer.product(),
            "ReLU": layer.fused("relu", residual=False),
            "GELU, tanh": layer.fused(residual=False),
            "GELU, erf": layer.fused("gelu-erf", residual=False),
            "GELU, tanh, and residual": layer.fused(),
            "two kernels": layer.two_kernels(),
            "product: PyTorch": layer.torch(vendor_product),
            PYTORCH: layer.torch(vendor_fused),
        }
    )
    if found:
        spreads[f"k = {k}"] = {
            name: times.middle for name, times in found.items()
        }
        us = {name: times.median for name, times in found.items()}
        alone, other = us.pop(ALONE), us.pop("product: PyTorch", None)
        own = dict.fromkeys(us, alone) | {PYTORCH: other}
        added[f"k = {k}"] = {ALONE: alone} | {
            name: 100 * (us[name] / own[name] - 1) for name in us
        }
if added:
    ct.table(
        f"{side} x {side}, more than the product alone",
        added,
        corner="depth",
        units={ALONE: "us", **dict.fromkeys(us, "%")},
    )

# %% depths-spread
if spreads:
    ct.table(
        "from p20 to p80, beside the median",
        spreads,
        corner="depth",
        units=dict.fromkeys(found, "%"),
    )

# %% [markdown]
# What the epilogues are in machine code. (A sanitizer works for seconds on each
# kernel that is loaded, and these are long: under one there is no table.)

# %% sass
ENDS = {
    "none": "",
    "ReLU": "Fused<Relu>",
    "GELU, tanh": "Fused<GeluTanh>",
    "GELU, erf": "Fused<GeluErf>",
}
table = {}
for name, end in ENDS.items() if not ct.tool.running() else ():
    function = gemm.kernel(gemm.TILES[0], False, False, "uint16", False, end)
    count = Counter(i.op for i in loops.disassemble(function))
    table[name] = {
        "products": count["HGMMA"],
        "FMAs, products and sums": count["FFMA"]
        + count["FMUL"]
        + count["FADD"],
        "special functions": count["MUFU"],
        "all": sum(count.values()),
    }
if table:
    ct.table("instructions in the machine code", table, corner="activation")
