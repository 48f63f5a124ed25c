# ---
# jupyter:
#   cudatut:
#     title: {en: "Implicit GEMM: the TMA, and beside cuDNN", zh: "隐式 GEMM：TMA，以及与 cuDNN 比较"}
#     requires: sm_90a
#     timeout_s: 240
#     sizes:
#       most_pixels: [4_096, 12]
#       most_images: [4_096, 1]
#       rounds: [20, 1]
#       ragged: [13, 7]
# ---

# %% [markdown]
# All kernels beside cuDNN, in fp32 and in bf16, on both anchors; then what the
# launchers choose for layers of many kinds.

# %% setup
import random
from statistics import median

import numpy as np

import cudatut as ct
from cudatut.book.images.implicit_gemm import im2col, launch
from cudatut.book.images.scoreboard import shapes
from cudatut.book.images.scoreboard.field import Field
from cudatut.book.images.shapes import RAGGED, Shape, reference
from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.rivals import cudnn_conv

rounds = 20
most_pixels = 4_096  # of a side; a tool sees smaller images, and few of them
most_images = 4_096


def case_of(case):
    return shapes.shrunk(case, most_pixels, most_images)


SMALL, LARGE = (case_of(case) for case in shapes.ANCHORS)
NAMES = {SMALL: "small anchor", LARGE: "large anchor"}

# %% windows
# What a tensor map in im2col mode says of the small anchor: where the first
# and the last window begin, as distances from the image's corners.
anchor = Shape(*SMALL.numbers)
lower, upper = im2col.corners(anchor)
of_image = (anchor.height + upper[0] - lower[0]) * (
    anchor.width + upper[1] - lower[1]
)
ct.facts(
    "the box in which windows begin",
    {
        "lower corner": str(lower),
        "upper corner": str(upper),
        "windows of an image": of_image,
        "results of an image": int(np.prod(anchor.out)),
    },
)


# %% [markdown]
# Right before fast: whole numbers, so that sums are exact before they are
# rounded.


# %% check
def whole(shape, seed):
    rng = ct.rng(seed)
    per_group = shape.channels // shape.groups
    sizes = (
        (shape.images, shape.channels, shape.height, shape.width),
        (shape.filters, per_group, *shape.window),
    )
    return [rng.integers(-4, 5, size).astype("float32") for size in sizes]


def last(x):
    """The channel behind row and column, in bf16."""
    return to_bf16(np.ascontiguousarray(np.moveaxis(x, 1, -1)))


def twice(run, out, wanted, name):
    for _ in range(2):
        ct.poison(out)
        run()
    got = out.get()
    got = to_float(got) if got.dtype == np.uint16 else got
    ct.check(got, wanted, name=name, rtol=0, atol=0)


MORE = [
    Shape(2, 24, 8, 12, 72, (3, 3), pad=(1, 1)),
    Shape(3, 40, 5, 8, 20, (5, 3), (2, 1), (3, 1)),
    Shape(2, 64, 9, 9, 64, (3, 3), pad=(1, 1), groups=8),
    Shape(1, 3, 30, 31, 64, (7, 7), (2, 2), (3, 3)),
    Shape(1, 512, 7, 7, 64, (3, 3), pad=(1, 1)),
]
ragged = 13
for some in MORE + list(RAGGED[:ragged]):
    x, w = whole(some, 1)
    wanted = reference(some, x, w)
    name = f"{some.height} x {some.width}, groups {some.groups}"
    ways = [launch.fp32]
    if not launch.no_lines(some, 0):
        ways.append(launch.lines)
    if not launch.no_boxes(some, 0):
        ways.append(launch.boxes)
    for way in ways:
        out = ct.empty(wanted.shape, "float32")
        run = way(some, ct.to_device(x), ct.to_device(w), out)
        twice(run, out, wanted, f"{way.__name__}, {name}")
    wanted = to_float(last(wanted))
    out = ct.empty(wanted.shape, "uint16")
    given = some, ct.to_device(last(x)), ct.to_device(last(w)), out
    twice(launch.bf16(*given), out, wanted, f"bf16, {name}")
    twice(launch.gather(*given), out, wanted, f"gather, {name}")

# %% [markdown]
# Both anchors: every rung, and cuDNN.


# %% anchors
def rivals(case, arrays):
    layer = case.layer
    return cudnn_conv.contestants(
        *arrays, layer.stride, layer.pad, layer.dilation, layer.groups
    )


def race(kind, cases, ways):
    """By case a benchmark of these ways, which are checked first."""
    field, found = Field(kind, cases), {}
    for case in cases:
        arrays = field.arrays(case)
        runs = {}
        for name, way in ways.items():
            ct.poison(arrays[2])
            runs[name] = way(Shape(*case.numbers), *arrays)
            runs[name]()
            field.check(case, name)
        if not ct.tool.running():
            runs |= rivals(case, arrays)
        found[case] = ct.bench(
            runs,
            flops=case.flops,
            name=f"{NAMES[case]}, {kind}",
            rounds=rounds,
            limit=kind == "fp32",
        )
    return found


fp32 = race(
    "fp32",
    [SMALL, LARGE],
    {"offsets": launch.offsets, "taps": launch.taps, "lines": launch.lines},
)
bf16 = race("bf16", [SMALL, LARGE], {"im2col by the TMA": launch.bf16})

# %% goals
if not ct.tool.running():
    ct.goals(
        "beside cuDNN",
        {
            f"{NAMES[case]}, {kind}": one[case].goal(ours, "cuDNN", least)
            for kind, one, ours, least in (
                ("fp32", fp32, "lines", 1.0),
                ("bf16", bf16, "im2col by the TMA", 0.95),
            )
            for case in (SMALL, LARGE)
        },
    )

# %% [markdown]
# Other layers, with what the launchers choose: in fp32 and in bf16, how many
# times as fast as cuDNN.

# %% layers
OTHERS = {
    "3x3, 7x7 results, 512 channels": shapes.named(
        "ResNet-50", "layer4.0.conv2", 32
    ),
    "1x1, 256 to 128": shapes.named("ResNeXt-50 32x4d", "layer1.1.conv1", 32),
    "32 groups of 8": shapes.named("ResNeXt-50 32x4d", "layer2.1.conv2", 32),
    "dilated by 36": shapes.named("DeepLabv3", "aspp.3", 8),
    "1x7": shapes.named("Inception v3", "6b.7x7_2", 32),
    "3x3 / 2, 32 channels": shapes.named("YOLOv3", "layer1", 32),
    "7x7 / 2, 3 channels": shapes.CUDATUTORIAL[3],
    "one image, 1024 channels": shapes.named("U-Net", "down5.2", 1),
}
OTHERS = {name: case_of(case) for name, case in OTHERS.items()}
chosen = {"fp32": launch.fp32, "bf16": launch.bf16}
rows = {name: {} for name in OTHERS}
for kind, way in chosen.items():
    field = Field(kind, list(OTHERS.values()))
    for name, case in OTHERS.items():
        arrays = field.arrays(case)
        ct.poison(arrays[2])
        run = way(Shape(*case.numbers), *arrays)
        run()
        field.check(case)
        if ct.tool.running():
            continue
        runs = {"ours": run, "cuDNN": rivals(case, arrays)["cuDNN"]}
        if not runs["cuDNN"]:
            continue
        times = ct.take_turns(runs, rounds, random.Random(0))
        ours, theirs = (median(times[one]) for one in runs)
        rows[name] |= {
            f"{kind}, ours": case.flops / ours / 1e6,
            f"{kind}, cuDNN / ours": theirs / ours,
        }
    del field

# %% table
if not ct.tool.running() and all(rows.values()):
    ct.table(
        "layers of many kinds",
        rows,
        corner="layer",
        units={
            "fp32, ours": "TFLOP/s",
            "fp32, cuDNN / ours": "×",
            "bf16, ours": "TFLOP/s",
            "bf16, cuDNN / ours": "×",
        },
    )
