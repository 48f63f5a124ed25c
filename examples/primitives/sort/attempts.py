# ---
# jupyter:
#   cudatut:
#     title: {en: "Radix sort: attempts", zh: "基数排序：尝试"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       many: [268_435_456, 65_536, 16_777_216]
#       rounds: [12, 1]
# ---

# %% [markdown]
# What made the sweeps faster, and what did not. Each row changes one thing of
# another; what it should gain was written down before it ran.

# %% variants
from dataclasses import dataclass

import numpy as np
from cudatut.book.primitives.sort.data import Keys
from cudatut.book.primitives.sort.sort import Sweep, compile_ahead
from cudatut.book.rivals import cub

import cudatut as ct

many = 268_435_456
rounds = 12


@dataclass(frozen=True)
class Variant:
    plan: dict
    of: str  # the row that it changes
    predicted: float | None  # times as fast as that one


FIRST = {  # our first shape of a sweep
    "THREADS": 384,
    "ITEMS": 20,
    "WINDOW": 4,
    "COLUMNS": 1,
    "FIRST_ANY": 0,
}
TWICE, ONCE = "each bit tested twice", "each bit tested once"
BASE = "load and store"
VARIANTS = {
    # As nvcc compiles the ballots, and a digit by a shift and a mask.
    TWICE: Variant({**FIRST, "BUMP": 0, "MATCH": 2, "SHIFTED": 1}, "", None),
    # 56 of the 100 instructions for 32 keys make the ballots; 25 are enough.
    ONCE: Variant({**FIRST, "BUMP": 0}, TWICE, 1.35),
    # No branch and no shuffle.
    BASE: Variant(FIRST, ONCE, 1.04),
    # One instruction in the place of 25: we did not know how long it takes.
    "match": Variant({**FIRST, "MATCH": 1}, BASE, None),
    # A look-back of one tile at a time.
    "one tile at a time": Variant({**FIRST, "WINDOW": 1}, BASE, 0.97),
    # Ranks without ballots in one pass of four.
    "first pass in any order": Variant({**FIRST, "FIRST_ANY": 1}, BASE, 1.035),
    # Digits are counted by the instruction that adds 1.
    "counters of 32 bits": Variant({**FIRST, "COLUMNS": 2}, BASE, 1.02),
    # Fewer threads with more keys: runs of 32 keys in place of 30.
    "256 threads, 32 keys each": Variant(
        {**FIRST, "THREADS": 256, "ITEMS": 32}, BASE, 1.0
    ),
    # The last three, and a look-back of eight tiles.
    "all of it": Variant({}, BASE, 1.06),
}

# Of pairs: where the values are meanwhile.
PAIRED = "values with their keys"
PAIRS = {
    # As our first sweep of pairs: each value has its place beside the key.
    PAIRED: Variant({"TOGETHER": 1, "THREADS": 256, "ITEMS": 24}, "", None),
    # No registers for values while ranks are made, and less shared memory.
    "values after their keys": Variant(
        {"THREADS": 256, "ITEMS": 24}, PAIRED, 1.05
    ),
    # 24 warps on an SM in place of 16, and runs of 36 keys in place of 24: the
    # best of the 24 shapes that we tried, so nothing was predicted.
    "384 threads": Variant({}, PAIRED, None),
    # Runs of 40 keys, with 20 warps.
    "320 threads, 32 pairs each": Variant(
        {"THREADS": 320, "ITEMS": 32}, "384 threads", 1.0
    ),
    # Runs of 72 keys, with 24 warps that all wait for each other.
    "768 threads": Variant(
        {"THREADS": 768, "ITEMS": 24, "MIN_BLOCKS": 1}, "384 threads", 1.0
    ),
}

# %% check
data = Keys(many)
keys, out, order = data.keys, ct.empty(many, "uint32"), data.order()
sorts = {name: Sweep("uint32", plan=v.plan) for name, v in VARIANTS.items()}
compile_ahead(list(sorts.values()))  # side by side
runs = {}
for name, sort in sorts.items():
    runs[name] = lambda sort=sort: sort(keys, out)
    runs[name]()
    ct.check(out, order, name=name, rtol=0)
values = ct.to_device(np.arange(many, dtype="uint32"))
moved, where = ct.empty(many, "uint32"), data.where()
sorts = {name: Sweep("uint32", True, v.plan) for name, v in PAIRS.items()}
compile_ahead(list(sorts.values()))
of_pairs = {}
for name, sort in sorts.items():
    of_pairs[name] = lambda sort=sort: sort(keys, out, values, moved)
    of_pairs[name]()
    ct.check(out, order, name=f"{name}: keys", rtol=0)
    ct.check(moved, where, name=f"{name}: values", rtol=0)

# %% attempts
theirs = ct.empty(many, "uint32")
runs["CUB"] = cub.contestant("sort", "uint32_SortKeys", keys, theirs, many)
bench = ct.bench(
    runs, bytes=36 * many, name=f"{many} keys", rounds=rounds, limit=False
)
of_pairs["CUB"] = cub.contestant(
    "sort", "uint32_SortPairs", keys, theirs, values, moved, many
)
paired = ct.bench(
    of_pairs, bytes=68 * many, name=f"{many} pairs", rounds=rounds, limit=False
)

# %% [markdown]
# The profiler runs this file again, with fewer keys. Counted are the sweeps of
# the check, four for each variant.

# %% counted
counted = ct.profile_launches(
    "primitives/sort_attempts",
    kernel="sweep",
    metrics=[
        "smsp__inst_executed.sum",
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
        "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ],
    launches=4 * (len(VARIANTS) + len(PAIRS)),
)
PROFILED = 16_777_216  # keys that the profiler sees

# %% table
UNITS = {"predicted": "×", "measured": "×", "time": "us"}
BUSY = {
    "schedulers issue": "%",
    "ALU is busy": "%",
    "shared memory is busy": "%",
    "memory is busy": "%",
}


def table(title, variants, bench, first):
    """first: of the sweeps that are counted, where those of `variants` begin."""
    rows = {}
    for k, (name, one) in enumerate(variants.items()):
        rows[name] = {
            "changes": one.of or None,
            "predicted": one.predicted,
            "measured": bench.ratio(name, one.of or name).median,
            "time": bench[name].median_us,
        }
        if counted:  # the second of four sweeps
            executed, *busy = counted[first + 4 * k + 1].values()
            rows[name]["instructions for 32 keys"] = executed / (PROFILED / 32)
            rows[name] |= dict(zip(BUSY, busy))
    units = UNITS | (BUSY if counted else {})
    ct.table(title, rows, corner="variant", units=units)


if not ct.tool.running():
    table("gains, predicted and measured", VARIANTS, bench, 0)

# %% pairs
if not ct.tool.running():
    table("gains, of pairs", PAIRS, paired, 4 * len(VARIANTS))
