# ---
# jupyter:
#   cudatut:
#     title: {en: "Scoreboard of convolutions: ten more", zh: "卷积排行榜：另外十层"}
#     requires: sm_90a
#     timeout_s: 300
#     sizes:
#       most_pixels: [4_096, 10]
#       most_images: [4_096, 1]
#       rounds: [15, 1]
# ---

# %% [markdown]
# Ten others, one of each network, drawn after the last change to a kernel or to
# the choice: nobody could tune for them.

# %% more
import cudatut as ct
from cudatut.book.images.scoreboard import choose, shapes
from cudatut.book.images.scoreboard.field import (
    Field, goal, mean, race, ratios,
)  # fmt: skip
from cudatut.book.images.shapes import Shape

most_pixels = 4_096
most_images = 4_096
rounds = 15
drawn = shapes.ten()
cases = [shapes.shrunk(case, most_pixels, most_images) for case in drawn]
ct.compile_ahead(choose.instances())
times = {}
for kind in choose.WAYS:
    field = Field(kind, cases)
    times[kind] = race(field, cases, rounds)
    del field

# %% ratios
beside = {kind: ratios(found) for kind, found in times.items()}
if beside["fp32"]:
    ct.table(
        "ten more, times as fast as cuDNN",
        {
            case.name: {
                "by, fp32": choose.way("fp32", Shape(*case.numbers)),
                **{
                    kind: found[case.name].median
                    for kind, found in beside.items()
                },
            }
            for case in cases
        },
        corner="layer",
    )
    wanted = {"fp32": 0.9, "bf16": 0.9}
    ct.goals(
        "ten more",
        {
            f"mean of the ten, {kind}": goal(
                mean([*found.values()]), wanted[kind]
            )
            for kind, found in beside.items()
        },
    )
