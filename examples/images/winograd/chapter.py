# ---
# jupyter:
#   cudatut:
#     title: {en: "Winograd's convolution", zh: "Winograd 卷积"}
#     requires: sm_80
#     timeout_s: 150
#     sizes:
#       layer: [[64, 256, 56, 56, 256], [2, 24, 12, 12, 40]]
#       most: [100_000_000, 1_000_000]
#       rounds: [20, 1]
# ---

# %% [markdown]
# A convolution of 3 x 3 windows in tiles of 4 x 4 results, for which 36
# multiplications of each channel are enough. First the whole program: three
# launches, of which the second makes 36 products.

# %% program
import numpy as np

import cudatut as ct
from cudatut.book.images.shapes import Shape, reference

# 2 images of 8 channels, 16 filters with windows of 3 x 3, and a border of 1.
shape = Shape(2, 8, 10, 12, 16, (3, 3), stride=(1, 1), pad=(1, 1))
rng = ct.rng(0)
images = rng.integers(-2, 3, (2, 8, 10, 12)).astype("float32")
weights = 9 * rng.integers(-2, 3, (16, 8, 3, 3)).astype("float32")

down, across = ct.cdiv(10, 4), ct.cdiv(12, 4)  # tiles of an image
tiles = ct.cdiv(2 * down * across, 4) * 4  # of all, a multiple of 4
places = 6 * 6  # of a tile: words of the image, and products

x, w = ct.to_device(images), ct.to_device(weights)
u = ct.empty((places, 8, 16), "float32")  # weights, transformed
v = ct.empty((places, 8, tiles), "float32")  # words of tiles, transformed
m = ct.empty((places, 16, tiles), "float32")  # products
y = ct.empty((2, 16, *shape.out), "float32")


def kernel(file, name):
    return ct.Kernel(f"images/winograd/{file}.cu", name)


given = shape.struct(), down, across, tiles
high, low = 8, 2  # rows of blocks: for 8 channels, and for 16 x 8 weights
kernel("transforms", "winograd_inputs<4>")(
    *given, 16, high, x, v, w, u,
    grid=(ct.cdiv(tiles, 128), high + low), block=128,
)  # fmt: skip
kernel("products", "winograd_products<32,32,16,4,4,4,8>")(
    16, tiles, 8, 16, u, v, m,
    grid=(ct.cdiv(tiles, 32), places), block=64, shared=4 * 4 * 16 * 64,
)  # fmt: skip
kernel("transforms", "winograd_results<4,4>")(
    *given, m, y, grid=(ct.cdiv(tiles, 128), 16), block=128
)

direct = y.size * 8 * 9
print("multiplications:", direct, "in the sum,", u[0].size * tiles * 36, "here")
# Weights are multiples of 9, so that nothing is rounded.
ct.check(y, reference(shape, images, weights), name="program", rtol=0)

# %% [markdown]
# What there is to do for the large layer, and what it takes at the limits of
# this GPU: of multiplications and additions, and of bytes.

# %% predict
from cudatut.book.images.winograd import launch

layer = (64, 256, 56, 56, 256)
large = Shape(*layer, (3, 3), pad=(1, 1))
fma, memory = ct.limits.fma(), ct.limits.bandwidth()
of_images = 4 * large.images * large.channels * large.height * large.width
of_weights = 4 * large.filters * large.channels * 9
results = of_images // large.channels * large.filters
rows = {}
for name, way in (("the sum", 1), ("F(2 x 2)", 2), ("F(4 x 4)", 4)):
    moved, flops = of_images + of_weights + results, large.flops
    if way > 1:
        held = launch.work(large, way)
        flops = 2 * held.places * held.tiles * large.channels * large.filters
        # What transforms read and write; products read and write it again, but
        # multiply meanwhile.
        moved += held.words + held.weights + held.products
    of_sums = flops / fma / 1e6
    of_bytes = moved / memory / 1e3
    rows[name] = {
        "operations": flops / 1e9,
        "bytes": moved / 1e6,
        "time of the operations": of_sums,
        "time of the bytes": of_bytes,
        "one after the other": of_sums + of_bytes * (way > 1),
    }
ct.table(
    "at the limits",
    rows,
    corner="way",
    units={
        "operations": "GFLOP",
        "bytes": "MB",
        "time of the operations": "us",
        "time of the bytes": "us",
        "one after the other": "us",
    },
)

# %% [markdown]
# Right before fast: images of one pixel, tiles cut at both sides, padding
# beyond the window, dilation, groups; some images at once, or one. Nothing may
# be off at all.

# %% check
from cudatut.book.images.winograd.reference import SHAPES, bound, numbers

most = 100_000_000  # FLOPs
for one in SHAPES:
    if one.flops > most:
        continue
    images, weights = numbers(one)
    a, b = ct.to_device(images), ct.to_device(weights)
    out = ct.empty((one.images, one.filters, *one.out), "float32")
    expected = reference(one, images, weights)
    for way in launch.WAYS:
        for at_once in (None, 1):
            ct.poison(out)
            launch.winograd(one, a, b, out, way, at_once)()
            size = f"{one.channels} x {one.height} x {one.width}"
            ct.check(out, expected, name=f"F({way}), {size}", rtol=0)

# %% [markdown]
# And random numbers, of which every result stays within its own bound.

# %% random
one = Shape(2, 72, 19, 15, 136, (3, 3), pad=(1, 1))
images = rng.standard_normal((2, 72, 19, 15), "float32")
weights = rng.standard_normal((136, 72, 3, 3), "float32")
a, b = ct.to_device(images), ct.to_device(weights)
out = ct.empty((2, 136, 19, 15), "float32")
expected = reference(one, images, weights)
for way in launch.WAYS:
    ct.poison(out)
    launch.winograd(one, a, b, out, way)()
    off = np.abs(out.get() - expected)
    beyond = np.maximum(off - bound(one, images, weights, way), 0)
    ct.check(beyond, 0 * off, name=f"F({way}), beyond their bounds", rtol=0)

# %% [markdown]
# The large layer, beside implicit GEMM and cuDNN.

# %% bench
from cudatut.book.images.implicit_gemm.launch import offsets
from cudatut.book.rivals import cudnn_conv

rounds = 20
x = ct.to_device(rng.standard_normal(layer[:4], "float32"))
w = ct.to_device(rng.standard_normal((layer[4], layer[1], 3, 3), "float32"))
y = ct.empty((layer[0], layer[4], *large.out), "float32")
two = launch.winograd(large, x, w, y, 2)
four = launch.winograd(large, x, w, y, 4)
rivals = cudnn_conv.contestants(x, w, y, pad=(1, 1), tries=0)
bench = ct.bench(
    {
        "implicit GEMM": offsets(large, x, w, y),
        "F(2 x 2)": two,
        "F(4 x 4)": four,
        "cuDNN": rivals["cuDNN"],
    },
    flops=large.flops,
    name="the large layer",
    rounds=rounds,
    limit=False,
)

# %% [markdown]
# The three launches of F(4 x 4) apart, and the transform of weights alone.
# Bytes are those that each has to move.

# %% parts
held = launch.work(large, 4)
of_weights = w.nbytes + held.weights
needed = {
    "inputs": x.nbytes + held.words + of_weights,
    "products": held.weights + held.words + held.products,
    "results": held.products + y.nbytes,
    "weights": of_weights,
}
parts = ct.bench(
    launch.parts(four),
    bytes=needed,
    name="steps of F(4 x 4)",
    rounds=rounds,
)

# %% look
if not ct.tool.running():
    us = {row.name: row.median_us for row in parts.rows}
    del us["weights"]  # a part of the inputs
    flops = 2 * held.places * held.tiles * large.channels * large.filters
    ct.facts(
        "where the time goes",
        {
            "products, share of the steps": (
                100 * us["products"] / sum(us.values()),
                "%",
            ),
            "products": (flops / us["products"] / 1e6, "TFLOP/s"),
            "products, share of the limit": (
                100 * flops / us["products"] / 1e6 / fma,
                "%",
            ),
            "all steps / the whole": (
                sum(us.values()) / bench["F(4 x 4)"].median_us,
                "×",
            ),
        },
    )
