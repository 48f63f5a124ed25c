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

# %% attempts
theirs = ct.empty(many, "uint32")
runs["CUB"] = cub.contestant("sort", "uint32_SortKeys", keys, theirs, many)
bench = ct.bench(
    runs, bytes=36 * many, name=f"{many} keys", rounds=rounds, limit=False
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
    launches=4 * len(VARIANTS),
)
PROFILED = 16_777_216  # keys that the profiler sees

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
    if counted:  # the second of four sweeps
        executed, issued, alu, shared, memory = counted[4 * k + 1].values()
        rows[name] |= {
            "instructions for 32 keys": executed / (PROFILED / 32),
            "schedulers issue": issued,
            "ALU is busy": alu,
            "shared memory is busy": shared,
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
        }
        | (
            {
                "schedulers issue": "%",
                "ALU is busy": "%",
                "shared memory is busy": "%",
                "memory is busy": "%",
            }
            if counted
            else {}
        ),
    )
