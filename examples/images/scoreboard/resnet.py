# ---
# jupyter:
#   cudatut:
#     title: {en: "Scoreboard of convolutions: ResNet-50", zh: "卷积排行榜：ResNet-50"}
#     requires: sm_90a
#     timeout_s: 300
#     sizes:
#       most_pixels: [4_096, 10]
#       most_images: [4_096, 1]
#       how_many: [100, 2]
#       rounds: [12, 1]
# ---

# %% [markdown]
# All convolutions of ResNet-50, for 32 images: those of equal sizes are timed
# once.

# %% layers
import cudatut as ct
from cudatut.book.images.scoreboard import choose, shapes
from cudatut.book.images.scoreboard.field import Field, mean, race, ratios

most_pixels = 4_096
most_images = 4_096
how_many = 100
rounds = 12
cases = [
    shapes.shrunk(case, most_pixels, most_images)
    for case in shapes.RESNET_50[:how_many]
]
ct.compile_ahead(choose.instances())
times = {}
for kind in choose.WAYS:
    field = Field(kind, cases)
    times[kind] = race(field, cases, rounds)
    del field

# %% table
beside = {kind: ratios(found) for kind, found in times.items()}
if beside["fp32"]:
    ct.table(
        "layers of ResNet-50, times as fast as cuDNN",
        {
            case.layer.name: {"how often": case.layer.times}
            | {kind: found[case.name].median for kind, found in beside.items()}
            for case in cases
        },
        corner="layer",
    )


# %% [markdown]
# One pass of the network: each time as often as the layer occurs.


# %% whole
def whole(kind, who):
    """Microseconds of all layers."""
    return sum(
        case.layer.times * times[kind][case.name][who].median_us
        for case in cases
    )


if beside["fp32"]:
    flops = sum(case.layer.times * case.flops for case in cases)
    ct.table(
        "all convolutions of ResNet-50, 32 images",
        {
            kind: {
                "ours": whole(kind, "ours"),
                "cuDNN": whole(kind, "cuDNN"),
                "ours, rate": flops / whole(kind, "ours") / 1e6,
                "of the sums": whole(kind, "cuDNN") / whole(kind, "ours"),
                "mean of the ratios": mean([*found.values()]).median,
            }
            for kind, found in beside.items()
        },
        corner="type",
        units={"ours": "us", "cuDNN": "us", "ours, rate": "TFLOP/s"},
    )
