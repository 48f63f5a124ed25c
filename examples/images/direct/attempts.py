# ---
# jupyter:
#   cudatut:
#     title: {en: "Direct convolution: attempts", zh: "直接卷积：尝试"}
#     requires: sm_80
#     timeout_s: 180
#     sizes:
#       rounds: [20, 1]
# ---

# %% [markdown]
# What made direct convolution faster, and what did not, on both anchors. Each
# row changes one thing of another row. Where a prediction stands, it was
# written down before the row ran.

# %% variants
from dataclasses import dataclass

from cudatut.book.images.direct import launch
from cudatut.book.images.direct.launch import MANY, Part
from cudatut.book.images.shapes import LARGE, SMALL, reference, shrunk

import cudatut as ct

rounds = 20
ACROSS = (("ACROSS", 1),)


@dataclass(frozen=True)
class Variant:
    rung: str
    of: str = ""  # the row that it changes
    predicted: float | None = None  # times as fast as that one, large anchor
    part: Part = MANY
    across: bool = False
    ahead: bool = False
    channels: int | None = None

    def run(self, *given):
        more = {"defines": ACROSS} if self.across else {}
        if self.rung == "window":
            more |= {"ahead": self.ahead, "channels": self.channels}
        return getattr(launch, self.rung)(*given, part=self.part, **more)


VARIANTS = {
    # As first written: a lane for each filter when weights are copied.
    "several, weights across": Variant("several", across=True),
    # 0.16 loads for an FMA become 0.09, and places are constants.
    "window, weights across": Variant(
        "window", "several, weights across", 1.5, across=True
    ),
    # 32 sectors for a load become 4, and L1 has less to do.
    "weights along": Variant("window", "window, weights across", 1.2),
    # The next step is on its way while this one is computed.
    "next step ahead": Variant("window", "weights along", 1.1, ahead=True),
    # Half of the steps' barriers, but more to keep in shared memory.
    "half the channels": Variant("window", "weights along", 0.97, channels=4),
    # 64 filters use a tile: half of the copies of the image.
    "blocks of 8 warps": Variant(
        "window", "weights along", 0.97, part=Part(7, 8, 8, 8)
    ),
    # 112 sums of a thread: fewer loads for an FMA, but half of the warps.
    "16 filters of a thread": Variant(
        "window", "weights along", 0.95, part=Part(7, 16, 8, 2)
    ),
    # Half of the sums of a thread: more warps hide more waits.
    "4 filters of a thread": Variant(
        "window", "weights along", 1.0, part=Part(7, 4, 8, 8)
    ),
}

# %% check
anchors = {"small": SMALL, "large": LARGE}
if ct.tool.running() == "ncu":
    anchors = {"large": LARGE}
elif ct.tool.running():
    anchors = {name: shrunk(shape) for name, shape in anchors.items()}
runs = {}
for anchor, shape in anchors.items():
    rng = ct.rng(0)
    images = shape.images, shape.channels, shape.height, shape.width
    weights = shape.filters, shape.channels, *shape.window
    images = rng.integers(-4, 5, images).astype("float32")
    weights = rng.integers(-4, 5, weights).astype("float32")
    x, w = ct.to_device(images), ct.to_device(weights)
    y = ct.empty((shape.images, shape.filters, *shape.out), "float32")
    one = shape._replace(images=1, filters=8)
    right = reference(one, images[-1:], weights[-8:])
    for name, variant in VARIANTS.items():
        runs[anchor, name] = variant.run(shape, x, w, y)
        ct.poison(y)
        runs[anchor, name]()
        found = y[-1:].get()[:, -8:]
        ct.check(found, right, name=f"{name}, {anchor}", rtol=0)
    x.set(rng.standard_normal(x.shape, "float32"))
    w.set(rng.standard_normal(w.shape, "float32"))

# %% attempts
times = {
    anchor: ct.bench(
        {name: runs[anchor, name] for name in VARIANTS},
        flops=shape.flops,
        name=f"attempts, {anchor} anchor",
        rounds=rounds,
    )
    for anchor, shape in anchors.items()
}

# %% [markdown]
# The profiler counts the launches of the check, on the large anchor.

# %% counted
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
METRICS = {
    "slots used": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "L1 is busy": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "barrier": STALL.format("barrier"),
    "loads": STALL.format("long_scoreboard"),
    "shared memory": STALL.format("short_scoreboard"),
}
counted = ct.profile_launches(
    "images/direct_attempts",
    "regex:^direct_",
    [SECTORS, REQUESTS, *METRICS.values()],
    launches=len(VARIANTS),
)

# %% table
rows = {}
for k, (name, one) in enumerate(VARIANTS.items()):
    if ct.tool.running():
        break
    before = one.of or name
    rows[name] = {
        "changes": one.of or None,
        "predicted": one.predicted,
        "measured": times["large"].ratio(name, before).median,
        "large anchor": times["large"][name].value,
        "small anchor": times["small"][name].value,
    }
    if counted:
        found = counted[k]
        rows[name] |= {"sectors / load": found[SECTORS] / found[REQUESTS]}
        rows[name] |= {what: found[one] for what, one in METRICS.items()}
if rows:
    ct.table(
        "gains, predicted and measured",
        rows,
        corner="variant",
        units={
            "predicted": "×",
            "measured": "×",
            "large anchor": "TFLOP/s",
            "small anchor": "TFLOP/s",
            "slots used": "%",
            "L1 is busy": "%",
        },
    )
