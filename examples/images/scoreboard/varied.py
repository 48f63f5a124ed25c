# ---
# jupyter:
#   cudatut:
#     title: {en: "Scoreboard of convolutions: other shapes", zh: "卷积排行榜：其他形状"}
#     requires: sm_90a
#     timeout_s: 300
#     sizes:
#       most_pixels: [4_096, 20]
#       most_images: [4_096, 1]
#       how_many: [100, 7]
#       rounds: [12, 1]
# ---

# %% [markdown]
# The seven shapes of CUDATutorial, and seven others by which layers differ:
# groups, one channel in a group, dilation, stride, windows of one row.

# %% shapes
import cudatut as ct
from cudatut.book.images.scoreboard import choose, shapes
from cudatut.book.images.scoreboard.field import Field, mean, race, ratios

most_pixels = 4_096
most_images = 4_096
how_many = 100
rounds = 12


def chosen(cases):
    some = cases[:how_many]
    return [shapes.shrunk(case, most_pixels, most_images) for case in some]


GROUPS = {
    "CUDATutorial": chosen(shapes.CUDATUTORIAL),
    "varied": chosen(shapes.VARIED),
}
EVERY = [case for cases in GROUPS.values() for case in cases]
ct.compile_ahead(choose.instances())
times = {}
for kind in choose.WAYS:
    field = Field(kind, EVERY)
    times[kind] = {
        group: race(field, cases, rounds) for group, cases in GROUPS.items()
    }
    del field

# %% [markdown]
# How many times as fast ours is as cuDNN.

# %% ratios
beside = {
    kind: {group: ratios(one) for group, one in found.items()}
    for kind, found in times.items()
}


def table(group):
    """Rates, and ratios to cuDNN; nothing under a tool."""
    if beside["fp32"][group]:
        ct.table(
            f"{group}, times as fast as cuDNN",
            {
                case.name.removeprefix("CUDATutorial "): {
                    f"{kind}, {what}": value
                    for kind, found in beside.items()
                    for what, value in (
                        ("rate", times[kind][group][case.name]["ours"].value),
                        ("ratio", found[group][case.name].median),
                    )
                }
                for case in GROUPS[group]
            },
            corner="layer",
            units={"fp32, rate": "TFLOP/s", "bf16, rate": "TFLOP/s"},
        )


table("CUDATutorial")

# %% others
table("varied")

# %% means
for group in GROUPS:
    if beside["fp32"][group]:
        ct.facts(
            f"{group}, geometric mean",
            {
                kind: mean([*found[group].values()]).median
                for kind, found in beside.items()
            },
        )
