# ---
# jupyter:
#   cudatut:
#     title: {en: "Direct convolution: the contest", zh: "直接卷积：比赛"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       rounds: [20, 1]
# ---

# %% [markdown]
# Layers of networks: the kernels of this chapter, cuDNN, and PyTorch, which has
# a kernel of its own for one channel a group.

# %% setup
from cudatut.book.images.direct import launch
from cudatut.book.images.shapes import LAYERS, reference, shrunk
from cudatut.book.rivals import cudnn_conv

import cudatut as ct

rounds = 20
layers = LAYERS
if ct.tool.running():
    layers = {name: shrunk(shape) for name, shape in LAYERS.items()}


def arrays(shape):
    """Small whole numbers, whose sums are exact."""
    rng = ct.rng(0)
    images = shape.images, shape.channels, shape.height, shape.width
    weights = shape.filters, shape.channels // shape.groups, *shape.window
    return (
        rng.integers(-4, 5, images).astype("float32"),
        rng.integers(-4, 5, weights).astype("float32"),
        ct.empty((shape.images, shape.filters, *shape.out), "float32"),
    )


def expected(shape, images, weights):
    """Of the last image; of the last 8 filters, where there is one group."""
    few = min(8, shape.filters) if shape.groups == 1 else shape.filters
    part = shape._replace(images=1, filters=few)
    return reference(part, images[-1:], weights[-few:])


# %% [markdown]
# Each layer: first the results, then the times.

# %% layers
times = {}
for name, shape in layers.items():
    images, weights, y = arrays(shape)
    x, w = ct.to_device(images), ct.to_device(weights)
    right = expected(shape, images, weights)
    given = shape, x, w, y
    runs = {
        "several": launch.several(*given, launch.suits(shape)),
        "window": launch.window(*given),
        "ahead": launch.ahead(*given),
    }
    if shape.filters * shape.product[2] <= launch.HELD:  # all weights fit
        runs = {
            "naive": launch.naive(*given),
            "constant": launch.constant(*given),
            **runs,
        }
    for rung, run in runs.items():
        ct.poison(y)
        run()
        found = y[-1:].get()[:, -right.shape[1] :]
        ct.check(found, right, name=f"{rung}, {name}", rtol=0)
    # The contest has random numbers.
    rng = ct.rng(1)
    x.set(rng.standard_normal(x.shape, "float32"))
    w.set(rng.standard_normal(w.shape, "float32"))
    rivals = cudnn_conv.contestants(
        x, w, y, shape.stride, shape.pad, shape.dilation, shape.groups, tries=0
    )
    times[name] = ct.bench(
        runs | rivals,
        flops=shape.flops,
        name=f"{name}: {shape.text}",
        rounds=rounds,
    )

# %% [markdown]
# All layers in one table: rates, and how many times as fast as cuDNN.

# %% table
if not ct.tool.running():
    shown = "several", "window", "ahead", "cuDNN"
    ct.table(
        "direct convolution, by layer",
        {
            name: {
                **{rung: one[rung].value for rung in shown},
                "ahead / cuDNN": one.ratio("ahead", "cuDNN").median,
            }
            for name, one in times.items()
        },
        corner="layer",
        units={**dict.fromkeys(shown, "TFLOP/s"), "ahead / cuDNN": "×"},
    )

# %% [markdown]
# Constant memory, where one launch has the weights of all filters.

# %% constant
if not ct.tool.running():
    ct.table(
        "constant memory, where all weights fit",
        {
            name: {
                "naive": one["naive"].value,
                "constant": one["constant"].value,
                "constant / naive": one.ratio("constant", "naive").median,
            }
            for name, one in times.items()
            if any(row.name == "constant" for row in one.rows)
        },
        corner="layer",
        units={
            "naive": "TFLOP/s",
            "constant": "TFLOP/s",
            "constant / naive": "×",
        },
    )

# %% goals
if not ct.tool.running():
    wanted = {
        "small anchor, half of cuDNN": ("small anchor", "cuDNN", 0.5),
        "large anchor, half of cuDNN": ("large anchor", "cuDNN", 0.5),
        "the first of a ResNet, as cuDNN": (
            "the first of a ResNet",
            "cuDNN",
            1.0,
        ),
        "depthwise, as PyTorch's own": ("depthwise", "PyTorch", 1.0),
    }
    ct.goals(
        "goals of this chapter",
        {
            name: times[layer].goal("ahead", rival, least)
            for name, (layer, rival, least) in wanted.items()
        },
    )
