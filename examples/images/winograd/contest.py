# ---
# jupyter:
#   cudatut:
#     title: {en: "Winograd's convolution: the contest", zh: "Winograd 卷积：比赛"}
#     requires: sm_90
#     timeout_s: 240
#     sizes:
#       most_pixels: [4_096, 10]
#       most_images: [4_096, 2]
#       rounds: [20, 1]
# ---

# %% [markdown]
# Both anchors, and the layers of the scoreboard that have windows of 3 x 3 and
# strides of 1: ours, in the way that it chooses, and cuDNN, on the same memory.

# %% setup
from statistics import geometric_mean

import numpy as np

import cudatut as ct
from cudatut.book.images.implicit_gemm.launch import offsets
from cudatut.book.images.scoreboard.shapes import ANCHORS, DRAWN, shrunk
from cudatut.book.images.shapes import Shape
from cudatut.book.images.winograd import launch
from cudatut.book.images.winograd.reference import bound, refuses
from cudatut.book.published.sgemm import sgemm
from cudatut.book.rivals import cudnn_conv

most_pixels = 4_096  # of a side; a tool sees smaller images, and few of them
most_images = 4_096
rounds = 20


def of(cases):
    some = [shrunk(case, most_pixels, most_images) for case in cases]
    found = {case.name: Shape(*case.numbers) for case in some}
    return {
        name: shape
        for name, shape in found.items()
        if not refuses(shape) and shape.groups == 1
    }


anchors, drawn = of(ANCHORS), of(DRAWN)


def arrays(shape, seed=1):
    rng = ct.rng(seed)
    images = shape.images, shape.channels, shape.height, shape.width
    weights = shape.filters, shape.channels, *shape.window
    results = shape.images, shape.filters, *shape.out
    return (
        ct.to_device(rng.standard_normal(images, "float32")),
        ct.to_device(rng.standard_normal(weights, "float32")),
        ct.empty(results, "float32"),
    )


# %% [markdown]
# Right before fast: the first filters of the first and the last image, each
# result within its own bound.


# %% check
from cudatut.book.images.shapes import reference


def check(name, shape, x, w, y, run):
    ct.poison(y)
    run()
    some = shape._replace(images=1, filters=2)
    for which, image in (("first", 0), ("last", shape.images - 1)):
        images, weights = x[image : image + 1].get(), w[:2].get()
        expected = reference(some, images, weights)
        off = np.abs(y[image : image + 1].get()[:, :2] - expected)
        beyond = np.maximum(off - bound(some, images, weights, run.m), 0)
        of = f"{name}, {which} image, beyond their bounds"
        ct.check(beyond, 0 * off, name=of, rtol=0)


# %% anchors
def race(name, shape):
    x, w, y = arrays(shape)
    ours = launch.winograd(shape, x, w, y)
    check(name, shape, x, w, y, ours)
    rivals = cudnn_conv.contestants(
        x, w, y, shape.stride, shape.pad, shape.dilation, tries=0
    )
    return ct.bench(
        {
            "ours": ours,
            "weights fixed": launch.winograd(shape, x, w, y, fixed=True),
            "implicit GEMM": offsets(shape, x, w, y),
            "cuDNN": rivals["cuDNN"],
        },
        flops=shape.flops,
        name=name,
        rounds=rounds,
        limit=False,
    )


of_anchors = {name: race(name, shape) for name, shape in anchors.items()}

# %% layers
of_drawn = {name: race(name, shape) for name, shape in drawn.items()}

# %% goals
if not ct.tool.running():
    ct.goals(
        "anchors, ours / cuDNN",
        {
            name: one.goal("ours", "cuDNN", 1.0)
            for name, one in of_anchors.items()
            if any(row.name == "cuDNN" for row in one.rows)
        },
    )

# %% table
if not ct.tool.running():
    rows, ratios = {}, []
    for name, one in of_drawn.items():
        shape = drawn[name]
        predicted = launch.cost(shape, launch.chosen(shape))
        row = rows[name] = {
            "tiles": launch.chosen(shape),
            "predicted": predicted,
            "ours": one["ours"].median_us,
            "implicit GEMM": one["implicit GEMM"].median_us,
        }
        if any(found.name == "cuDNN" for found in one.rows):
            row["cuDNN"] = one["cuDNN"].median_us
            row["cuDNN / ours"] = one.ratio("ours", "cuDNN").median
            ratios.append(row["cuDNN / ours"])
    times = ("predicted", "ours", "implicit GEMM", "cuDNN")
    shown = [name for name in times if name in next(iter(rows.values()))]
    ct.table(
        "layers of published networks",
        rows,
        corner="layer",
        units=dict.fromkeys(shown, "us"),
    )
    if ratios:
        ct.facts(
            "these layers, times as fast as cuDNN",
            {
                "geometric mean": geometric_mean(ratios),
                "least": min(ratios),
                "most": max(ratios),
            },
        )

# %% [markdown]
# What we tried, on both anchors with tiles of 4 x 4. Products alone: one launch
# for each, by the book's product; one launch for all, with a block for each
# tile; and blocks that stay for several tiles.


# %% products
def one_by_one(shape, run):
    """A launch of the book's product for each place."""
    held, depth = launch.work(shape, 4), shape.channels
    u, v, m = (
        words.reshape(held.places, rows, columns)
        for words, rows, columns in zip(
            run.memory,
            (depth, depth, shape.filters),
            (held.filters, held.tiles, held.tiles),
        )
    )
    each = [
        sgemm.launcher(
            shape.filters, held.tiles, depth, 1.0, u[i], held.filters,
            v[i], held.tiles, 0.0, m[i], held.tiles, True,
        )
        for i in range(held.places)
    ]  # fmt: skip

    def launches():
        for one in each:
            one()

    return launches


of_products = {}
for name, shape in anchors.items():
    x, w, y = arrays(shape)
    blocks = launch.winograd(shape, x, w, y, 4, stays=False)
    stay = launch.winograd(shape, x, w, y, 4)
    for run in (blocks, stay):
        check(name, shape, x, w, y, run)
    held = launch.work(shape, 4)
    of_products[name] = ct.bench(
        {
            "one by one": one_by_one(shape, stay),
            "one launch": launch.parts(blocks)["products"],
            "blocks stay": launch.parts(stay)["products"],
        },
        flops=2 * held.places * held.tiles * shape.channels * shape.filters,
        name=f"products of {name}",
        rounds=rounds,
    )

# %% [markdown]
# And few images at once, so that what is written between the steps stays in the
# L2 cache: the convolution as a whole.

# %% images
at_once = {}
for name, shape in anchors.items():
    x, w, y = arrays(shape)
    runs = {}
    for count in (2, 8, 16, shape.images):
        some = min(count, shape.images)
        label = f"{some} images at once"
        runs[label] = launch.winograd(shape, x, w, y, 4, some)
    at_once[name] = ct.bench(
        runs, flops=shape.flops, name=name, rounds=rounds, limit=False
    )
