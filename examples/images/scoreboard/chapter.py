# ---
# jupyter:
#   cudatut:
#     title: {en: "Scoreboard: convolutions", zh: "卷积排行榜"}
#     requires: sm_90a
#     timeout_s: 600
#     sizes:
#       most_pixels: [4_096, 10]
#       most_images: [4_096, 1]
#       how_many: [100, 2]
#       rounds: [20, 3]
# ---

# %% [markdown]
# Convolutions of published networks: which were chosen, and which were drawn
# before any kernel was tuned.

# %% setup
from statistics import geometric_mean

import cudatut as ct
from cudatut.book.images.scoreboard import shapes
from cudatut.book.images.scoreboard.field import Field, race, ratios
from cudatut.book.images.scoreboard.networks import NETWORKS

most_pixels = 4_096  # of a side; a tool sees smaller images, and few of them
most_images = 4_096
how_many = 100
rounds = 20


def chosen(cases):
    some = cases[:how_many]
    return [shapes.shrunk(case, most_pixels, most_images) for case in some]


GROUPS = {
    "anchors": chosen(shapes.ANCHORS),
    "CUDATutorial": chosen(shapes.CUDATUTORIAL),
    "ResNet-50": chosen(shapes.RESNET_50),
    "varied": chosen(shapes.VARIED),
    "drawn": chosen(shapes.DRAWN),
}
EVERY = [case for cases in GROUPS.values() for case in cases]
as_drawn = [float(case.flops) for case in shapes.twenty()]
ct.check(
    [float(case.flops) for case in shapes.DRAWN],
    as_drawn,
    name="the twenty as drawn",
    rtol=0,
)

# %% predict
# Bytes that must move and operations that must be done: which of the two takes
# longer at the limits of this GPU?
memory = ct.limits.bandwidth()
ct.table(
    "the twenty",
    {
        case.name: {
            "operations": case.flops / 1e9,
            "bytes, bf16": 2 * sum(case.words) / 1e6,
            "operations for a byte": case.flops / (2 * sum(case.words)),
            "time of the bytes": 2 * sum(case.words) / memory / 1e3,
        }
        for case in GROUPS["drawn"]
    },
    corner="layer",
    units={
        "operations": "GFLOP",
        "bytes, bf16": "MB",
        "time of the bytes": "us",
    },
)
ct.facts(
    "networks",
    {
        name: sum(layer.times for layer in network.layers)
        for name, network in NETWORKS.items()
    },
)

# %% [markdown]
# fp32, without TF32: ours and cuDNN, on the same memory, in random order.

# %% fp32
times = {}
field = Field("fp32", EVERY)
times["fp32"] = {
    group: race(field, cases, rounds) for group, cases in GROUPS.items()
}
del field

# %% [markdown]
# bf16 with the channel last: CUTLASS takes part where it can.

# %% bf16
field = Field("bf16", EVERY)
times["bf16"] = {
    group: race(field, cases, rounds) for group, cases in GROUPS.items()
}
del field

# %% [markdown]
# How many times as fast ours is as cuDNN.


# %% ratios
def table(group):
    """By case: the rates of ours, and the ratios to the rivals."""
    rows = {}
    for case in GROUPS[group]:
        row = rows[case.name] = {}
        for kind, found in times.items():
            one = found[group].get(case.name)
            if one is None:  # under a tool
                continue
            row[f"{kind}, ours"] = one["ours"].value
            for rival in ("cuDNN", "PyTorch", "CUTLASS"):
                if any(x.name == rival for x in one.rows):
                    ratio = one.ratio("ours", rival).median
                    row[f"{kind}, {rival} / ours"] = ratio
    units = {f"{kind}, ours": "TFLOP/s" for kind in times}
    if not ct.tool.running():
        ct.table(group, rows, corner="layer", units=units)


for group in GROUPS:
    table(group)

# %% mean
if not ct.tool.running():
    for kind, found in times.items():
        drawn = ratios(found["drawn"])
        if not drawn:  # without PyTorch
            continue
        medians = [ratio.median for ratio in drawn.values()]
        verdicts = [ratio.verdict(1.0) for ratio in drawn.values()]
        ct.facts(
            f"twenty layers, {kind}: times as fast as cuDNN",
            {
                "geometric mean": geometric_mean(medians),
                # No interval of a mean is wider: all at their ends at once.
                "geometric mean of the low ends": geometric_mean(
                    ratio.low for ratio in drawn.values()
                ),
                "least": min(medians),
                "most": max(medians),
                "ours is faster": verdicts.count("reached"),
                "cuDNN is faster": verdicts.count("missed"),
                "not decided": verdicts.count("undecided"),
            },
        )

# %% [markdown]
# The goals on the anchors.

# %% goals
if not ct.tool.running():
    wanted = {"fp32": 1.0, "bf16": 0.95}
    ct.goals(
        "anchors, ours / cuDNN",
        {
            f"{name}, {kind}": one.goal("ours", "cuDNN", least)
            for kind, least in wanted.items()
            for name, one in times[kind]["anchors"].items()
            if any(row.name == "cuDNN" for row in one.rows)
        },
    )

# %% [markdown]
# Where cuDNN is faster, beyond what chance allows.

# %% behind
if not ct.tool.running():
    lost = {}
    for kind, found in times.items():
        for group in found.values():
            for name, ratio in ratios(group).items():
                if ratio.verdict(1.0) == "missed":
                    lost[f"{name}, {kind}"] = {"ours / cuDNN": ratio.median}
    if lost:
        ct.table("where cuDNN is faster", lost, corner="contest")

# %% [markdown]
# Who took part.

# %% rivals
if not ct.tool.running():
    from importlib.metadata import version

    from cudatut.book.rivals import cudnn_conv

    ct.facts(
        "rivals of this run",
        {
            "cuDNN": str(cudnn_conv.version()),
            "PyTorch": version("torch"),
            "CUTLASS": version("nvidia-cutlass"),
        },
    )
