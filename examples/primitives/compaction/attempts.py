# ---
# jupyter:
#   cudatut:
#     title: {en: "Compaction and partition: attempts", zh: "压缩与划分：尝试"}
#     requires: sm_90
#     timeout_s: 180
#     sizes:
#       many: [268_435_456, 65_536, 67_108_864]
#       rounds: [25, 1]
# ---

# %% [markdown]
# What made compaction faster, and what did not. Each row changes one thing of
# another row. Where a prediction stands, it was written down before the row ran.

# %% variants
from dataclasses import dataclass, replace

from cudatut.book.primitives.compaction.compactions import Compaction, Shape
from cudatut.book.rivals import cub

import cudatut as ct

many = 268_435_456
rounds = 25


@dataclass(frozen=True)
class Variant:
    kind: str
    shape: Shape
    of: str  # the row that it changes
    predicted: float | None = None  # times as fast as that one


LOOKS = Shape(256, 8, resident=3, look=2)
BALLOTS = replace(LOOKS, more=(("PACKED", 0),))
ONE = Shape(256, 8, resident=2, look=9, buffers=3)  # tiles of 32 KB
SMALLER = replace(ONE, vectors=6, buffers=4)  # 24 KB
TWO, THREE = (("AHEAD", 2),), (("AHEAD", 3),)

VARIANTS = {
    "look-back, ballots": Variant("look_back", BALLOTS, ""),
    # Half of the instructions, and fewer registers.
    "bytes in place of ballots": Variant(
        "look_back", LOOKS, "look-back, ballots", 1.1
    ),
    # The next tiles are on their way while a block looks back.
    "copy engine": Variant(
        "bulk",
        replace(LOOKS, resident=2, buffers=2),
        "bytes in place of ballots",
    ),
    # Nobody waits for a prefix, and the wait is a tile behind.
    "carried": Variant("carried", ONE, "copy engine", 1.3),
    # Twice the warps for the same tile hide more of each other's waits.
    "blocks of 512": Variant(
        "carried", replace(ONE, block=512, vectors=4), "carried", 1.05
    ),
    # Nobody reads the output again.
    "streaming stores": Variant(
        "carried", replace(ONE, more=(("STREAMED", 1),)), "carried", 1.0
    ),
    # One more tile on its way.
    "four tiles of 24 KB": Variant("carried", SMALLER, "carried", 1.03),
    # Late neighbors may be a tile later still.
    "two tiles ahead": Variant(
        "carried", replace(SMALLER, more=TWO), "four tiles of 24 KB", 1.0
    ),
    # Loads have a tile more of time.
    "five tiles of 20 KB": Variant(
        "carried",
        replace(SMALLER, vectors=5, buffers=5, more=TWO),
        "two tiles ahead",
        1.02,
    ),
    # With two tiles ahead nobody should wait any more.
    "three tiles ahead": Variant(
        "carried",
        replace(SMALLER, vectors=5, buffers=5, more=THREE),
        "five tiles of 20 KB",
        1.0,
    ),
    "two ahead, blocks of 512": Variant(
        "carried",
        replace(SMALLER, block=512, vectors=3, look=5, more=TWO),
        "two tiles ahead",
        1.02,
    ),
}

# %% check
host = ct.rng(0).standard_normal(many, dtype="float32")
expected = host[host > 0]
x, out = ct.to_device(host), ct.empty(many, "float32")
count = ct.empty(1, "int64")
runs = {}
for name, one in VARIANTS.items():
    run = Compaction(many, kind=one.kind, shape=one.shape)
    runs[name] = lambda run=run: run(x, out, count)
    ct.poison(out)
    runs[name]()
    ct.check(out[: expected.size], expected, name=name, rtol=0, atol=0)

# %% attempts
runs["CUB"] = cub.contestant("select", "float32_SelectIf", x, out, count, many)
bench = ct.bench(
    runs,
    bytes=4 * (many + expected.size),
    name=f"{many} floats, half stay",
    rounds=rounds,
)

# %% [markdown]
# The profiler runs this file again, with fewer elements. Counted are the
# launches of the check.

# %% counted
counted = ct.profile_launches(
    "primitives/compaction_attempts",
    kernel="regex:^compact",
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
    before = one.of or name
    rows[name] = {
        "changes": one.of or None,
        "predicted": one.predicted,
        "measured": bench.ratio(name, before).median,
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
