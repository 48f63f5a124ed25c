# ---
# jupyter:
#   cudatut:
#     title: {en: "im2col and GEMM", zh: "im2col 与 GEMM"}
#     requires: sm_80
#     timeout_s: 150
#     sizes:
#       small: [[32, 128, 28, 28, 128], [2, 8, 9, 9, 12]]
#       most: [100_000_000, 3_000_000]
# ---

# %% [markdown]
# The windows of a small image, written as a matrix; then the convolution is a
# product. First the whole program.

# %% program
import numpy as np

import cudatut as ct
from cudatut.book.images.shapes import Shape, reference
from cudatut.book.published.sgemm import sgemm

shape = Shape(1, 1, 4, 4, 2, (3, 3))  # 4 x 4 pixels, 2 filters of 3 x 3
image = np.arange(16, dtype="float32").reshape(1, 1, 4, 4)
filters = ct.rng(0).integers(-4, 5, (2, 1, 3, 3)).astype("float32")

# A row for each word of a window, a column for each of the 2 x 2 windows.
x, matrix = ct.to_device(image), ct.empty((9, 4), "float32")
im2col = ct.Kernel("images/im2col/im2col.cu", "im2col_words")
im2col(shape.struct(), 4, x, matrix, grid=1, block=64)
print("the matrix:", matrix.get().astype(int), sep="\n")

# The filters are the other factor as they lie.
rows, product = ct.to_device(filters.reshape(2, 9)), ct.empty((2, 4), "float32")
sgemm.sgemm(rows, matrix, product)
print("the product:", product.get().astype(int), sep="\n")
expected = reference(shape, image, filters).reshape(2, 4)
ct.check(product, expected, name="program", rtol=0)

# %% [markdown]
# How much memory the matrix takes, for layers of networks: in all, and of one
# image at a time.

# %% memory
from cudatut.book.images.im2col import launch
from cudatut.book.images.shapes import LAYERS

rows = {}
for name, one in LAYERS.items():
    whole, single = launch.memory(one), launch.memory(one, 1)
    rows[name] = {
        "images": whole.images / 1e6,
        "matrix": whole.matrix / 1e6,
        "matrix / images": whole.growth,
        "of one image": single.matrix / 1e6,
    }
ct.table(
    "bytes of the matrix",
    rows,
    corner="layer",
    units={
        "images": "MB",
        "matrix": "MB",
        "matrix / images": "×",
        "of one image": "MB",
    },
)

# %% [markdown]
# What im2col, the product and turning its results should take: the bytes at the
# measured limit of the memory, the FLOPs at that of the FMAs.

# %% predict
bandwidth, fma = ct.limits.bandwidth(), ct.limits.fma()
rows = {}
for name, one in LAYERS.items():
    if one.groups > 1:
        continue
    memory = launch.memory(one)
    steps = {
        "im2col": (memory.images + memory.matrix) / bandwidth / 1e3,
        "product": one.flops / fma / 1e6,
        "turn": 2 * memory.product / bandwidth / 1e3,
    }
    total = sum(steps.values())
    rows[name] = steps | {
        "in all": total,
        "rate": one.flops / total / 1e6,
        "product's share": 100 * steps["product"] / total,
    }
ct.table(
    "time of a convolution by im2col, at the limits",
    rows,
    corner="layer",
    units={
        **dict.fromkeys(("im2col", "product", "turn", "in all"), "us"),
        "rate": "TFLOP/s",
        "product's share": "%",
    },
)

# %% [markdown]
# Right before fast: each kernel against NumPy's matrix, then the convolution
# with all images at once and one by one. Sums of small whole numbers are exact.

# %% check
from cudatut.book.images.im2col.reference import matrix as by_numpy
from cudatut.book.images.shapes import RAGGED

most = 100_000_000  # FLOPs
for one in RAGGED:
    if one.flops > most:
        continue
    rng = ct.rng(1)
    of_images = one.images, one.channels, one.height, one.width
    of_weights = one.filters, one.channels // one.groups, *one.window
    images = rng.integers(-4, 5, of_images).astype("float32")
    weights = rng.integers(-4, 5, of_weights).astype("float32")
    a, b = ct.to_device(images), ct.to_device(weights)
    wanted, found = np.zeros(launch.extents(one)), by_numpy(one, images)
    wanted[:, : found.shape[1]] = found  # a pitch of 4 words, filled with zeros
    m = ct.empty(wanted.shape, "float32")
    for kind in launch.KINDS:
        if kind == "row" and launch.refuses_row(one):
            continue
        ct.poison(m)
        launch.im2col(one, a, m, kind)()
        ct.check(m, wanted, name=f"{kind}, {one.text}", rtol=0)
    out = ct.empty((one.images, one.filters, *one.out), "float32")
    expected = reference(one, images, weights)
    for at_once in (None, 1):
        ct.poison(out)
        launch.convolve(one, a, b, out, at_once)()
        ct.check(out, expected, name=f"convolve, {one.text}", rtol=0)

# %% [markdown]
# The small anchor: 32 images of 128 channels and 28 x 28 pixels, 128 filters of
# 3 x 3. First im2col alone, beside a copy of half of the matrix onto the other
# half, which moves about as many bytes.

# %% copies
small = (32, 128, 28, 28, 128)
layer = Shape(*small, (3, 3), pad=(1, 1))
rng = ct.rng(2)
x = ct.to_device(rng.standard_normal(small[:4], "float32"))
w_host = rng.standard_normal((small[4], small[1], 3, 3), "float32")
w = ct.to_device(w_host)
y = ct.empty((small[0], small[4], *layer.out), "float32")
m = ct.empty(launch.extents(layer), "float32")
half = m.reshape(-1)[: m.size // 2], m.reshape(-1)[m.size // 2 :]
runs = {kind: launch.im2col(layer, x, m, kind) for kind in launch.KINDS}
runs["copy of a half"] = ct.vendor.copy(*half)
copies = ct.bench(
    runs,
    bytes=dict.fromkeys(launch.KINDS, x.nbytes + m.nbytes)
    | {"copy of a half": 2 * half[0].nbytes},
    name="im2col, small anchor",
    rounds=20,
)

# %% [markdown]
# Then the whole convolution, and its product alone, beside cuDNN and the direct
# convolution.

# %% bench
from cudatut.book.images.direct import launch as direct
from cudatut.book.rivals import cudnn_conv

whole = launch.convolve(layer, x, w, y)
launch.im2col(layer, x, m)()
p = ct.empty((layer.filters, m.shape[1]), "float32")
alone = sgemm.prepare(w.reshape(layer.filters, -1), m, p)
rivals = cudnn_conv.contestants(x, w, y, pad=(1, 1), tries=0)
times = ct.bench(
    {
        "direct": direct.direct(layer, x, w, y),
        "im2col and product": whole,
        "the product alone": alone,
        "cuDNN": rivals["cuDNN"],
    },
    flops=layer.flops,
    name=f"small anchor: {layer.text}",
    rounds=20,
)

# %% [markdown]
# What the whole is made of.

# %% parts
if not ct.tool.running():
    whole_us = times["im2col and product"].median_us
    copy_us = copies[launch.chosen(layer)].median_us
    product_us = times["the product alone"].median_us
    ct.facts(
        "parts of the whole, small anchor",
        {
            "im2col": (100 * copy_us / whole_us, "%"),
            "product": (100 * product_us / whole_us, "%"),
            "the rest": (
                100 * (whole_us - copy_us - product_us) / whole_us,
                "%",
            ),
        },
    )
