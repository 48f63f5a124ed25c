# ---
# jupyter:
#   cudatut:
#     title:
#       en: "One kernel for a network's input: attempts"
#       zh: "一个 kernel 备好网络输入：尝试"
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       many: [64, 2, 64]
#       rounds: [25, 1]
# ---

# %% [markdown]
# What made the kernel faster, and what did not. Each row changes one thing of
# another row. Each prediction was written down before the row ran.

# %% variants
from dataclasses import dataclass, field

from cudatut.book.images.preprocess.batches import SIDE, bf16, mixed, noise
from cudatut.book.images.preprocess.preprocess import (
    TWELVE,
    Batch,
    compile_ahead,
    letterbox,
)
from cudatut.book.images.preprocess.reference import (
    letterbox as expected,
    useful_bytes,
)

import cudatut as ct

many = 64
rounds = 25
shapes = mixed(many)


@dataclass(frozen=True)
class Variant:
    of: str  # the row that it changes
    predicted: float | None = None  # times as fast as that one
    way: str = "dots"
    plan: dict = field(default_factory=dict)


VARIANTS = {
    "words": Variant("", None, "rows", {"SKIP": 0}),
    # A row of weight 0 is not read: 21 of 297 MB.
    "no row without weight": Variant("words", 1.06, "rows"),
    # By the machine code, 56 instructions for a pixel, where 87 were; and of 64
    # photographs 29 have a scale of one or three: half of the sums.
    "dot products": Variant(
        "no row without weight", 1.13, plan={"DOWN": 8, "BLOCKS": 4}
    ),
    # More warps hide more of each other's waits, and smaller blocks spread
    # those at their beginnings.
    "ten blocks of 128": Variant("dot products", 1.04),
    # A load of a warp touches half of the lines, a store has half the bytes.
    "stores of pairs": Variant(
        "ten blocks of 128", 1.03, plan={"NEIGHBORS": 2}
    ),
    # The last blocks have nothing but border, and are short.
    "middle first": Variant("ten blocks of 128", 1.02, plan={"CENTER": 1}),
    # 48 warps where 40 were; each row loads the taps of its columns again.
    "twelve blocks": Variant("ten blocks of 128", 1.02, plan=TWELVE),
    # A third word is needed where six bytes begin at the last one of a word:
    # one load of three for three pixels of four less.
    "third word if needed": Variant(
        "twelve blocks", 1.02, plan={**TWELVE, "THIRD": 0}
    ),
    # A tile waits for memory once, and not once for each of its four rows.
    "asked ahead": Variant("ten blocks of 128", 1.04, plan={"AHEAD": 1}),
    # Four tiles of five have pixels of a 640 x 480, where all had. Of the 64
    # photographs two have this size.
    "tiles from the image on": Variant(
        "ten blocks of 128", 1.0, plan={"TURN": 1}
    ),
}
compile_ahead(
    SIDE, [one.plan for one in VARIANTS.values() if one.way == "dots"]
)

# %% check
images = noise(shapes)
batch = Batch(images)
out = ct.empty((many, 3, SIDE, SIDE), "uint16")
wanted = {i: expected(images[i], SIDE, SIDE) for i in (0, many - 1)}
runs = {}
for name, one in VARIANTS.items():
    ct.poison(out)
    runs[name] = letterbox(batch, out, way=one.way, **one.plan)
    runs[name]()
    for i, reference in wanted.items():
        ct.check(
            bf16(out[i].get()), reference,
            name=f"{name}, image {i}", rtol=2**-8, atol=1e-3,
        )  # fmt: skip

# %% attempts
useful = useful_bytes(shapes, SIDE, SIDE)
a, b = ct.empty(useful // 2, "uint8"), ct.empty(useful // 2, "uint8")
runs["copy"] = ct.vendor.copy(b, a)
bench = ct.bench(runs, bytes=useful, name=f"{many} photographs", rounds=rounds)

# %% [markdown]
# The profiler runs this file again. Counted are the launches of the check.

# %% counted
counted = ct.profile_launches(
    "images/preprocess_attempts",
    kernel="regex:^letterbox",
    metrics=[
        "smsp__inst_executed.sum",
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
        "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
        "dram__bytes_read.sum",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ],
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
        "measured": bench.ratio(name, before).median,
        "time": bench[name].median_us,
    }
    if counted:
        executed, issued, first_level, read, memory = counted[k].values()
        rows[name] |= {
            "instructions per pixel": 32 * executed / (many * SIDE * SIDE),
            "schedulers issue": issued,
            "L1 is busy": first_level,
            "read": read / 1e6,
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
            "L1 is busy": "%",
            "read": "MB",
            "memory is busy": "%",
        },
    )
