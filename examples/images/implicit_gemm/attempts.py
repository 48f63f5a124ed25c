# ---
# jupyter:
#   cudatut:
#     title: {en: "Implicit GEMM: attempts", zh: "隐式 GEMM：尝试"}
#     requires: sm_90a
#     timeout_s: 180
#     sizes:
#       most_pixels: [4_096, 12, 4_096]
#       most_images: [4_096, 1, 4_096]
#       rounds: [15, 1]
# ---

# %% [markdown]
# What made the convolution in fp32 faster, and what did not. Each row changes
# one thing of another row. Predictions were written down before a row ran.

# %% variants
from dataclasses import dataclass
from functools import partial

from cudatut.book.images.implicit_gemm import launch
from cudatut.book.images.implicit_gemm.launch import WIDE
from cudatut.book.images.scoreboard import shapes
from cudatut.book.images.scoreboard.field import Field
from cudatut.book.images.shapes import Shape
from cudatut.book.rivals import cudnn_conv

import cudatut as ct

rounds = 15
most_pixels = 4_096
most_images = 4_096


@dataclass(frozen=True)
class Variant:
    way: object
    of: str  # the row that it changes
    predicted: float | None = None  # times as fast as that one


def lines(**changes):
    return partial(launch.lines, tile=launch.OF_LINES._replace(**changes))


VARIANTS = {
    "offsets": Variant(partial(launch.offsets, tile=WIDE), ""),
    # Weights in copies of 16 bytes, no table: 3 % fewer instructions.
    "taps": Variant(partial(launch.taps, tile=WIDE), "offsets", 1.04),
    # A third of the copies of B, each of 16 bytes: 6 % fewer instructions.
    "lines": Variant(lines(), "taps", 1.06),
    # Copies have more time.
    "three stages": Variant(lines(stages=3), "lines", 1.01),
    # Shorter steps, more of them under way, twice as many barriers.
    "8 deep, four stages": Variant(lines(bk=8, stages=4), "lines", 0.98),
    # Blocks of two warps: more of them for each SM, at different places.
    "64 x 64": Variant(lines(bn=64, blocks=5), "lines", 0.98),
}

# %% check
ANCHORS = {
    name: shapes.shrunk(case, most_pixels, most_images)
    for name, case in zip(("small anchor", "large anchor"), shapes.ANCHORS)
}
field = Field("fp32", list(ANCHORS.values()))
found = {}
for name, case in ANCHORS.items():
    arrays = field.arrays(case)
    runs = {}
    for label, one in VARIANTS.items():
        ct.poison(arrays[2])
        runs[label] = one.way(Shape(*case.numbers), *arrays)
        runs[label]()
        field.check(case, label)
    if not ct.tool.running():
        layer = case.layer
        runs |= cudnn_conv.contestants(*arrays, layer.stride, layer.pad)
        del runs["PyTorch"]  # the same kernel
    found[name] = ct.bench(
        runs, flops=case.flops, name=f"{name}, fp32", rounds=rounds
    )

# %% [markdown]
# The profiler runs this file again. Counted are the launches of the check: of
# the small anchor, then of the large one.

# %% counted
counted = ct.profile_launches(
    "images/implicit_gemm_attempts",
    kernel="regex:^convolution",
    metrics=[
        "smsp__inst_executed.sum",
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
    ],
    launches=len(VARIANTS),
)

# %% table
rows = {}
for k, (label, one) in enumerate(VARIANTS.items()):
    if ct.tool.running():
        break
    before = one.of or label
    rows[label] = {"changes": one.of or None, "predicted": one.predicted}
    for name in ANCHORS:
        rows[label][f"measured, {name}"] = (
            found[name].ratio(label, before).median
        )
    if counted:
        executed, issued = counted[k].values()
        flops = ANCHORS["small anchor"].flops
        rows[label] |= {
            "instructions for an FMA": executed / (flops / 64),
            "schedulers issue": issued,
        }
if rows:
    ct.table(
        "gains, predicted and measured",
        rows,
        corner="variant",
        units={
            "predicted": "×",
            **{f"measured, {name}": "×" for name in ANCHORS},
            "schedulers issue": "%",
        },
    )
