# ---
# jupyter:
#   cudatut:
#     title: {en: "Scoreboard: convolutions", zh: "卷积排行榜"}
#     requires: sm_90a
#     timeout_s: 300
#     sizes:
#       images: [32, 1]
#       most_pixels: [4_096, 10]
#       most_images: [4_096, 1]
#       how_many: [100, 3]
#       rounds: [15, 1]
# ---

# %% [markdown]
# Three layers of the same image: a plain one, one for each channel, and one
# that sees one pixel. First the two limits of each, then the times.

# %% program
import random
from statistics import median

import numpy as np

import cudatut as ct
from cudatut.book.images.scoreboard.choose import convolution
from cudatut.book.images.shapes import Shape, reference
from cudatut.book.images.winograd.reference import bound
from cudatut.book.rivals import cudnn_conv

images = 32
fma, memory = ct.limits.fma(), ct.limits.bandwidth()  # TFLOP/s, GB/s
size = images, 192, 28, 28, 192  # channels, height, width, filters
layers = {
    "3 x 3": Shape(*size, (3, 3), pad=(1, 1)),
    "depthwise 3 x 3": Shape(*size, (3, 3), pad=(1, 1), groups=192),
    "1 x 1": Shape(*size, (1, 1)),
}
us = {}
print(f"{'':16}{'FMAs':>9}{'bytes':>9}{'ours':>9}{'cuDNN':>9}  by")
for name, one in layers.items():
    x = ct.rng(1).standard_normal(size[:4], dtype="float32")
    w = ct.rng(2).standard_normal(
        (192, 192 // one.groups, *one.window), dtype="float32"
    )
    y = ct.empty((images, 192, *one.out), "float32")
    given = ct.to_device(x), ct.to_device(w), y
    run = convolution("fp32", one, *given)
    run()
    first = one._replace(images=1)
    off = np.abs(y[:1].get() - reference(first, x[:1], w))
    # All roundings on the way of a result, as if they were the largest and to
    # the same side. Winograd has others than a sum.
    m = run.run.m if run.way == "Winograd" else 1
    assert (off <= bound(first, x[:1], w, m)).all(), name
    rivals = cudnn_conv.contestants(*given, pad=one.pad, groups=one.groups)
    runs = {"ours": run} | {k: v for k, v in rivals.items() if v}
    times = ct.take_turns(runs, rounds=15, order=random.Random(0))
    us[name] = {k: median(t) for k, t in times.items()}
    moved = x.nbytes + w.nbytes + y.nbytes
    limits = one.flops / fma / 1e6, moved / memory / 1e3
    row = *limits, us[name]["ours"], us[name].get("cuDNN", 0)
    print(f"{name:16}" + "".join(f"{t:6.1f} us" for t in row), "", run.way)

# %% [markdown]
# The operations of each of these layers, and its time.

# %% cheaper
if not ct.tool.running() and "cuDNN" in us["3 x 3"]:
    whole, parts = "3 x 3", ("depthwise 3 x 3", "1 x 1")
    ct.table(
        "one layer, and two in its place",
        {
            "3 x 3": {
                "operations": layers[whole].flops / 1e9,
                "ours": us[whole]["ours"],
                "cuDNN": us[whole]["cuDNN"],
            },
            "depthwise 3 x 3, then 1 x 1": {
                "operations": sum(layers[p].flops for p in parts) / 1e9,
                "ours": sum(us[p]["ours"] for p in parts),
                "cuDNN": sum(us[p]["cuDNN"] for p in parts),
            },
        },
        corner="layer",
        units={"operations": "GFLOP", "ours": "us", "cuDNN": "us"},
    )

# %% [markdown]
# The convolutions of the goals: two anchors, and twenty that were drawn before
# any kernel was tuned.

# %% setup
from cudatut.book.images.scoreboard import choose, shapes
from cudatut.book.images.scoreboard.field import (
    Field, goal, mean, race, ratios,
)  # fmt: skip
from cudatut.book.images.scoreboard.networks import NETWORKS

most_pixels = 4_096  # of a side; a tool sees smaller images, and few of them
most_images = 4_096
how_many = 100
rounds = 15


def chosen(cases):
    some = cases[:how_many]
    return [shapes.shrunk(case, most_pixels, most_images) for case in some]


GROUPS = {"anchors": chosen(shapes.ANCHORS), "drawn": chosen(shapes.DRAWN)}
EVERY = [case for cases in GROUPS.values() for case in cases]
ct.check(
    [float(case.flops) for case in shapes.DRAWN],
    [float(case.flops) for case in shapes.twenty()],
    name="the twenty as drawn",
    rtol=0,
)

# %% predict
# Bytes that must move and operations that must be done, in fp32: which of the
# two takes longer?
if not ct.tool.running():
    bounds = {
        case.name: {
            "operations": case.flops / 1e9,
            "moved": 4 * sum(case.words) / 1e6,
            "time of the FMAs": case.flops / fma / 1e6,
            "time of the bytes": 4 * sum(case.words) / memory / 1e3,
        }
        for case in GROUPS["drawn"]
    }
    ct.table(
        "the twenty, fp32",
        bounds,
        corner="layer",
        units={
            "operations": "GFLOP",
            "moved": "MB",
            "time of the FMAs": "us",
            "time of the bytes": "us",
        },
    )
    longer = [
        row["time of the bytes"] > row["time of the FMAs"]
        for row in bounds.values()
    ]
    ct.facts("of the twenty", {"bytes take longer": sum(longer)})

# %% networks
ct.facts(
    "convolutions of each network",
    {
        name: sum(layer.times for layer in network.layers)
        for name, network in NETWORKS.items()
    },
)

# %% [markdown]
# What is chosen by the sizes.

# %% ways
ct.table(
    "what computes them",
    {
        case.name: {
            kind: choose.way(kind, Shape(*case.numbers)) for kind in choose.WAYS
        }
        for case in EVERY
    },
    corner="layer",
)

# %% [markdown]
# fp32 without TF32: ours and cuDNN, on the same memory, in random order.

# %% fp32
ct.compile_ahead(choose.instances())
times = {}
field = Field("fp32", EVERY)
times["fp32"] = {
    group: race(field, cases, rounds) for group, cases in GROUPS.items()
}
del field

# %% [markdown]
# bf16 with the channel last.

# %% bf16
field = Field("bf16", EVERY)
times["bf16"] = {
    group: race(field, cases, rounds) for group, cases in GROUPS.items()
}
del field

# %% [markdown]
# How many times as fast ours is as cuDNN, for each of the twenty.

# %% chart
beside = {
    kind: {group: ratios(one) for group, one in found.items()}
    for kind, found in times.items()
}
by_bytes = sorted(GROUPS["drawn"], key=lambda one: one.flops / sum(one.words))
if beside["fp32"]["drawn"]:
    ct.series(
        "the twenty, from few operations for a byte to many",
        x=("layer", ""),
        y=("time of cuDNN / ours", ""),
        lines={
            kind: [
                (i + 1, found["drawn"][case.name].median)
                for i, case in enumerate(by_bytes)
            ]
            for kind, found in beside.items()
        },
    )

# %% by-name
if beside["fp32"]["drawn"]:
    ct.table(
        "the twenty, times as fast as cuDNN",
        {
            case.name: {
                f"{kind}, {what}": value
                for kind, found in beside.items()
                for what, value in (
                    ("rate", times[kind]["drawn"][case.name]["ours"].value),
                    ("ratio", found["drawn"][case.name].median),
                )
            }
            for case in by_bytes
        },
        corner="layer",
        units={"fp32, rate": "TFLOP/s", "bf16, rate": "TFLOP/s"},
    )

# %% [markdown]
# The goals, which were set before the kernels.

# %% goals
WANTED = {"fp32": (1.0, 0.9), "bf16": (0.95, 0.9)}
if beside["fp32"]["drawn"]:
    wanted = {}
    for kind, (anchor, average) in WANTED.items():
        for name, found in beside[kind]["anchors"].items():
            wanted[f"{name}, {kind}"] = goal(found, anchor)
        of_all = mean([*beside[kind]["drawn"].values()])
        wanted[f"mean of the twenty, {kind}"] = goal(of_all, average)
    ct.goals("times as fast as cuDNN", wanted)

# %% counts
if beside["fp32"]["drawn"]:
    for kind, found in beside.items():
        verdicts = [one.verdict(1.0) for one in found["drawn"].values()]
        medians = [one.median for one in found["drawn"].values()]
        ct.facts(
            f"the twenty, {kind}",
            {
                "ours is faster": verdicts.count("reached"),
                "cuDNN is faster": verdicts.count("missed"),
                "not decided": verdicts.count("undecided"),
                "least": min(medians),
                "most": max(medians),
            },
        )

# %% [markdown]
# Where cuDNN is faster, beyond what chance allows.

# %% behind
lost = {
    f"{name}, {kind}": {
        "ours": times[kind][group][name]["ours"].median_us,
        "cuDNN": times[kind][group][name]["cuDNN"].median_us,
        "cuDNN / ours": one.median,
    }
    for kind, found in beside.items()
    for group, some in found.items()
    for name, one in some.items()
    if one.verdict(1.0) == "missed"
}
if lost:
    ct.table(
        "where cuDNN is faster",
        lost,
        corner="contest",
        units={"ours": "us", "cuDNN": "us"},
    )

# %% [markdown]
# Who took part.

# %% rivals
if not ct.tool.running():
    from importlib.metadata import version

    ct.facts(
        "rivals of this run",
        {"cuDNN": str(cudnn_conv.version()), "PyTorch": version("torch")},
    )
