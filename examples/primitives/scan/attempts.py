# ---
# jupyter:
#   cudatut:
#     title: {en: "Scan: attempts", zh: "前缀和：尝试"}
#     requires: sm_90
#     timeout_s: 180
#     sizes:
#       many: [268_435_456, 65_536, 67_108_864]
#       rounds: [25, 1]
# ---

# %% [markdown]
# What made the scan of a long array faster, and what did not. Each row changes
# one thing of another row. Where a prediction stands, it was written down before
# the row ran.

# %% variants
from dataclasses import dataclass, replace

import numpy as np

import cudatut as ct
from cudatut.book.primitives.scan.scans import SHAPES, Scan, Shape
from cudatut.book.rivals import cub

many = 268_435_456
rounds = 25


@dataclass(frozen=True)
class Variant:
    kind: str
    shape: Shape
    of: str  # the row that it changes
    predicted: float | None = None  # times as fast as that one


LOOKS = SHAPES["look_back"]
AHEAD = Shape(buffers=7, look=5)


def ahead(predicted, of="runs ahead", more=(), **changes):
    shape = replace(AHEAD, more=tuple(more), **changes)
    return Variant("ahead", shape, of, predicted)


LARGE = {"block": 512, "vectors": 6, "buffers": 4}
ENGINE = ("BULK_STORES", 1)
TWO, THREE, FIVE = (("LOOKERS", looks) for looks in (2, 3, 5))
VARIANTS = {
    "look-back": Variant("look_back", LOOKS, ""),
    # A window of 64 words in place of 32: fewer trips to L2 in a row.
    "two words for each lane": Variant(
        "look_back", replace(LOOKS, look=2), "look-back"
    ),
    # Two trips to L2, however many tiles finish in the time of one.
    "groups of tiles": Variant("in_order", SHAPES["in_order"], "look-back"),
    # The next tiles are on their way while a block looks back.
    "copy engine": Variant("bulk", SHAPES["bulk"], "groups of tiles"),
    # Sums are told when a tile comes, and looked at before it is scanned.
    "runs ahead": ahead(1.28, "copy engine"),
    # One tile comes, one is told, one is scanned: nothing is left to wait with.
    "three tiles in place of seven": ahead(0.85, buffers=3),
    # Twice the words to look at, in half of the time.
    "tiles of 16 KB": ahead(0.97, vectors=4, buffers=14),
    # Fewer words to look at, fewer tiles on their way.
    "four tiles of 48 KB": ahead(1.0, **LARGE),
    # No warp waits until its stores are taken.
    "the copy engine stores": ahead(1.0, more=[ENGINE]),
    # A wave of tiles no longer waits for the wave before to be looked at.
    "two warps look": ahead(1.24, more=[TWO]),
    "three warps look": ahead(1.29, more=[THREE]),
    # Three have gained; the bytes alone would need less time still.
    "five warps look": ahead(1.03, "three warps look", more=[FIVE]),
    "three warps look, the engine stores": ahead(
        1.01, "three warps look", more=[THREE, ENGINE]
    ),
    "three warps look, 48 KB": ahead(
        1.09, "four tiles of 48 KB", more=[THREE], **LARGE
    ),
}

# %% check
host = ct.rng(0).integers(-100, 101, many).astype("int32")
expected = np.cumsum(host, dtype="int32")
x, out = ct.to_device(host), ct.empty(many, "int32")
runs = {}
for name, one in VARIANTS.items():
    run = Scan(one.kind, many, "int32", shape=one.shape)
    runs[name] = lambda run=run: run(x, out)
    ct.poison(out)
    runs[name]()
    ct.check(out, expected, name=name, rtol=0)

# %% attempts
runs["CUB"] = cub.contestant("scan", "int32_InclusiveSum", x, out, many)
bench = ct.bench(
    runs, bytes=8 * many, name=f"scan of {many} int32", rounds=rounds
)

# %% [markdown]
# The profiler runs this file again, with fewer elements. Counted are the
# launches of the check.

# %% counted
counted = ct.profile_launches(
    "primitives/scan_attempts",
    kernel="regex:^scan_",
    metrics=[
        "smsp__inst_executed.sum",
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ],
    launches=len(VARIANTS),
)
PROFILED = 67_108_864  # elements that the profiler sees

# %% table
rows = {}
for k, (name, one) in enumerate(VARIANTS.items()):
    if ct.tool.running():
        break
    rows[name] = {
        "changes": one.of or None,
        "predicted": one.predicted,
        "measured": bench.ratio(name, one.of or name).median,
        "time": bench[name].median_us,
    }
    if counted:
        executed, issued, memory = counted[k].values()
        rows[name] |= {
            "instructions per 32 elements": executed / (PROFILED / 32),
            "schedulers issue": issued,
            "memory is busy": memory,
        }
if rows:
    ct.table(
        "gains, predicted and measured",
        rows,
        corner="variant",
        units={
            "predicted": "×",
            "measured": "×",
            "time": "us",
            "schedulers issue": "%",
            "memory is busy": "%",
        },
    )
