# ---
# jupyter:
#   cudatut:
#     title: {en: "im2col and GEMM: the contest", zh: "im2col 与 GEMM：比赛"}
#     requires: sm_80
#     timeout_s: 180
#     sizes:
#       rounds: [20, 1]
# ---

# %% [markdown]
# Layers of networks: im2col beside a copy, then the convolution with some or
# all images at once, beside cuDNN.

# %% setup
from cudatut.book.images.im2col import launch
from cudatut.book.images.shapes import LAYERS, reference, shrunk
from cudatut.book.published.sgemm import sgemm
from cudatut.book.rivals import cudnn_conv

import cudatut as ct

rounds = 20
layers = {name: one for name, one in LAYERS.items() if one.groups == 1}
if ct.tool.running():
    layers = {name: shrunk(shape) for name, shape in layers.items()}


def arrays(shape):
    """Small whole numbers, whose sums are exact."""
    rng = ct.rng(0)
    images = shape.images, shape.channels, shape.height, shape.width
    weights = shape.filters, shape.channels, *shape.window
    return (
        rng.integers(-4, 5, images).astype("float32"),
        rng.integers(-4, 5, weights).astype("float32"),
        ct.empty((shape.images, shape.filters, *shape.out), "float32"),
    )


def expected(shape, images, weights):
    """Of the last image, and of the last 8 filters."""
    few = min(8, shape.filters)
    part = shape._replace(images=1, filters=few)
    return reference(part, images[-1:], weights[-few:])


def matrices(name, shape, x):
    """im2col by each kernel, beside a copy of half of the matrix onto the other
    half."""
    m = ct.empty(launch.extents(shape), "float32")
    words = m.reshape(-1)
    half = words[: m.size // 2], words[m.size // 2 : m.size // 2 * 2]
    kinds = [
        kind
        for kind in launch.KINDS
        if kind != "row" or launch.refuses_row(shape) is None
    ]
    runs = {kind: launch.im2col(shape, x, m, kind) for kind in kinds}
    runs["chosen"] = launch.im2col(shape, x, m)
    runs["copy of a half"] = ct.vendor.copy(*half)
    moved = dict.fromkeys(runs, x.nbytes + m.nbytes)
    moved["copy of a half"] = 2 * half[0].nbytes
    return ct.bench(runs, bytes=moved, name=f"im2col, {name}", rounds=rounds)


# %% [markdown]
# Each layer: the results first, then the times.

# %% layers
copies, times = {}, {}
for name, shape in layers.items():
    images, weights, y = arrays(shape)
    x, w = ct.to_device(images), ct.to_device(weights)
    right = expected(shape, images, weights)
    runs = {}
    for at_once in (1, 4, 16):
        runs[f"{at_once} images"] = launch.convolve(shape, x, w, y, at_once)
    runs["all images"] = launch.convolve(shape, x, w, y, shape.images)
    for label, run in runs.items():
        ct.poison(y)
        run()
        found = y[-1:].get()[:, -right.shape[1] :]
        ct.check(found, right, name=f"{label}, {name}", rtol=0)
    # The contest has random numbers.
    rng = ct.rng(1)
    x.set(rng.standard_normal(x.shape, "float32"))
    w.set(rng.standard_normal(w.shape, "float32"))
    copies[name] = matrices(name, shape, x)
    rows, pitch = launch.extents(shape)
    m = ct.empty((rows, pitch), "float32")
    launch.im2col(shape, x, m)()
    p = ct.empty((shape.filters, pitch), "float32")
    runs["the product alone"] = sgemm.prepare(
        w.reshape(shape.filters, rows), m, p
    )
    rivals = cudnn_conv.contestants(
        x, w, y, shape.stride, shape.pad, shape.dilation, tries=0
    )
    times[name] = ct.bench(
        runs | {"cuDNN": rivals["cuDNN"]},
        flops=shape.flops,
        name=f"{name}: {shape.text}",
        rounds=rounds,
    )
    del m, p, runs  # the largest matrix has 1,850 MB

# %% [markdown]
# All layers in one table.

# %% table
if not ct.tool.running():
    rows = {}
    for name, one in times.items():
        rows[name] = {
            "im2col / copy": copies[name]
            .ratio("chosen", "copy of a half")
            .median,
            "all images": one["all images"].value,
            "the product alone": one["the product alone"].value,
            "cuDNN": one["cuDNN"].value,
            "ours / cuDNN": one.ratio("all images", "cuDNN").median,
        }
    ct.table(
        "convolution by im2col, by layer",
        rows,
        corner="layer",
        units={
            "im2col / copy": "×",
            "all images": "TFLOP/s",
            "the product alone": "TFLOP/s",
            "cuDNN": "TFLOP/s",
            "ours / cuDNN": "×",
        },
    )

# %% [markdown]
# How many images a matrix holds.

# %% at-once
if not ct.tool.running():
    counts = {n: f"{n} images" for n in ("1", "4", "16", "all")}
    ct.table(
        "images at once",
        {
            name: {n: one[label].value for n, label in counts.items()}
            for name, one in times.items()
        },
        corner="layer",
        units=dict.fromkeys(counts, "TFLOP/s"),
    )

# %% goals
if not ct.tool.running():
    pair = "chosen", "copy of a half"
    ct.goals(
        "goals of this chapter",
        {
            "im2col, large anchor, 0.9 of a copy": copies["large anchor"].goal(
                *pair, 0.9
            ),
            "im2col, small anchor, 0.9 of a copy": copies["small anchor"].goal(
                *pair, 0.9
            ),
            "convolution, large anchor, 0.85 of cuDNN": times[
                "large anchor"
            ].goal("all images", "cuDNN", 0.85),
            "convolution, 7 x 7 pixels, as cuDNN": times["7 x 7 pixels"].goal(
                "all images", "cuDNN", 1.0
            ),
        },
    )
