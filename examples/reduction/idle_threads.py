# ---
# jupyter:
#   cudatut:
#     title: {en: "Two elements per thread", zh: "每个线程两个元素"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# The fourth rung: add while loading, so that one tree serves twice as many elements.

# %% setup
import numpy as np
from ladder import LADDER, Sum

import cudatut as ct
from cudatut.profiler import profile_launches

gpu = ct.device()
SEQUENTIAL, TWO = LADDER["sequential"], LADDER["two_per_thread"]
profiled_n = 1 << 20  # what a profiler sees
n, block = ct.size(1 << 25, 1 << 14, profiled=profiled_n), 256
problem = Sum(n)

# %% count
FILE = "reduction/idle_threads.cu"
idle = {}
for name, per_thread in (
    ("one element per thread", 1),
    ("two elements per thread", 2),
):
    count = ct.Kernel(
        FILE, "count_additions", defines={"PER_THREAD": per_thread}
    )
    additions, rounds = ct.empty(block, "int32"), ct.empty(1, "int32")
    count(additions, rounds, grid=1, block=block)
    added, steps = additions.get(), int(rounds.get()[0]) + per_thread - 1
    idle[per_thread] = 1 - added.sum() / (block * steps)
    ct.facts(
        f"a full block, {name}",
        {
            "elements": per_thread * block,
            "additions": added.sum(),
            "threads that only load": (added == 0).sum(),
            "steps": steps,
            "threads without an addition, over all steps": (
                100 * idle[per_thread],
                "%",
            ),
        },
    )

# %% predict
# Counted in the machine code that nvcc 13.0 makes for sm_90: per warp before the loop, per warp
# and round, and at the end by warp 0.
CODE = {"sequential": (25, 12, 9), "two_per_thread": (31, 12, 9)}
PER_BLOCK = {"sequential": block, "two_per_thread": 2 * block}  # elements
issued = (
    gpu.sm_count * 4 * gpu.clock_khz / 1e3
)  # warp instructions per us: 4 schedulers per SM


def instructions(kernel):
    """Warp instructions of one block."""
    before, in_round, at_end = CODE[kernel]
    return block // 32 * (before + 8 * in_round + 1) + at_end


def blocks(kernel, n):
    """Blocks of all launches until one partial sum is left."""
    left, total = n, 0
    while True:
        left = ct.cdiv(left, PER_BLOCK[kernel])
        total += left
        if left == 1:
            return total


def time_to_issue(kernel):
    """Microseconds in which all schedulers together issue the instructions of the whole sum."""
    return blocks(kernel, n) * instructions(kernel) / issued


for kernel in CODE:
    ct.facts(
        f"{kernel}: prediction",
        {
            "blocks": blocks(kernel, n),
            "barriers per block": 9,
            "warp instructions per block": instructions(kernel),
            "warp instructions per element": instructions(kernel)
            / PER_BLOCK[kernel],
            "bytes": (4 * (n + 2 * blocks(kernel, n)) / 1e6, "MB"),
            "time of the bytes": (4 * n / ct.limits.bandwidth() / 1e3, "us"),
            "time to issue": (time_to_issue(kernel), "us"),
        },
    )

# %% check
problem.check(SEQUENTIAL)
problem.check(TWO)
LADDER.check(
    "two_per_thread",
    [{"n": m, "dtype": d} for d in ("float32", "int32") for m in ct.RAGGED],
)
for m in (
    255,
    256,
    257,
    511,
    512,
    513,
    767,
    768,
    769,
):  # where a tail ends between the two loads
    LADDER.check("two_per_thread", [{"n": m}])
ragged = Sum(ct.RAGGED[-1])
for threads in TWO.numbers("blocks"):
    ragged.check(TWO, threads)

# %% bench
bench = LADDER.bench(
    LADDER.upto("two_per_thread"), n=n, name=f"sum of {n} float32"
)

# %% compare
before, after = bench["sequential"].median_us, bench["two_per_thread"].median_us
ct.facts(
    "two_per_thread: predicted and measured",
    {
        "predicted by instructions": (time_to_issue("two_per_thread"), "us"),
        "predicted from the rung before": (
            before
            * time_to_issue("two_per_thread")
            / time_to_issue("sequential"),
            "us",
        ),
        "measured": (after, "us"),
    },
)

# %% speed-up-claim
ct.claim(
    id="reduction-add-while-loading",
    source="CUDATutorial 09/03",
    statement={
        "en": "Adding while loading makes the sum 1.95 times as fast (758.38 us after 1475.2 us).",
        "zh": "边加载边加，求和快到原来的 1.95 倍（1475.2 us 降到 758.38 us）。",
    },
    predicted=1475.2 / 758.38,
    measured=before / after,
    unit="×",
    verdict="confirmed"
    if abs(before / after * 758.38 / 1475.2 - 1) < 0.1
    else "depends",
)

# %% counters
INSTRUCTIONS, READ = "smsp__inst_executed.sum", "dram__bytes_read.sum"
ISSUED = "smsp__issue_active.avg.pct_of_peak_sustained_active"
AT_BARRIER = "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"
# The profiler runs this file again. Its first launches are those of the check: three for a sum of
# 1 Mi elements with one rung, then three with the other.
launches = profile_launches(
    "reduction/idle_threads",
    kernel="regex:^reduce_(sequential|two_per_thread)$",
    metrics=[INSTRUCTIONS, READ, ISSUED, AT_BARRIER],
    launches=4,
)
for kernel, counted in zip(CODE, launches[::3]):
    ct.facts(
        f"{kernel}: warp instructions",
        {
            "per block, predicted": instructions(kernel),
            "per block, measured": counted[INSTRUCTIONS]
            / (profiled_n // PER_BLOCK[kernel]),
            "per element, predicted": instructions(kernel) / PER_BLOCK[kernel],
            "per element, measured": counted[INSTRUCTIONS] / profiled_n,
            "cycles with an instruction issued": (counted[ISSUED], "%"),
            "wait at the barrier, per instruction": (
                counted[AT_BARRIER],
                "cycles",
            ),
            "bytes read per element": (counted[READ] / profiled_n, "B"),
        },
    )

# %% grids


def grid_of_the_source(length, bs):
    return (length + bs - 1) // (2 * bs)


lengths = np.arange(1, 20 * block + 1)
lost = np.maximum(lengths - 2 * block * grid_of_the_source(lengths, block), 0)
ct.facts(
    "grid = (len + bs - 1) / (2 * bs), bs = 256",
    {
        f"len = {m}: blocks, elements lost": f"{grid_of_the_source(m, block)}, {lost[m - 1]}"
        for m in (1, 256, 257, 512, 513, 768, 769, 1000, 1024)
    }
    | {
        "lengths that lose something": (100 * (lost > 0).mean(), "%"),
        "most elements lost": lost.max(),
    },
)

# %% lost
length = 513
kernel = TWO.compile(BLOCK=block, ELEMENT="int")
ones = ct.to_device(np.ones(length, "int32"))
sums = {}
for name, grid in (
    ("right", ct.cdiv(length, 2 * block)),
    ("source", grid_of_the_source(length, block)),
):
    out = ct.empty(grid, "int32")
    kernel(ones, out, length, grid=grid, block=block)
    sums[name] = int(out.get().sum())
    try:
        ct.check(
            np.array([sums[name]]),
            np.array([length]),
            name=f"513 ones, {grid} block(s)",
        )
    except ct.CheckError as error:
        print(error)

# %% grid-claim
ct.claim(
    id="reduction-grid-of-two",
    source="CUDATutorial 09/03",
    statement={
        "en": "A grid of (len + bs - 1) / (2 * bs) blocks covers every length; here 513 ones in blocks of 256.",
        "zh": "(len + bs - 1) / (2 * bs) 个线程块能覆盖任意长度；这里是 513 个 1，每块 256 个线程。",
    },
    predicted=length,
    measured=sums["source"],
    verdict="confirmed" if sums["source"] == length else "refuted",
)

# %% bounds
# Two wrong bounds, in a process of its own: what lies past the end there is a red zone of ct.
child = ct.isolated("""
import numpy as np
import cudatut as ct

length = 1000
ones, out = ct.to_device(np.ones(length, "int32")), ct.empty(2, "int32")
for name in ("sum_first_bound", "sum_second_bound"):
    ct.Kernel("reduction/idle_threads.cu", name)(ones, out, length, grid=2, block=256)
    try:
        ct.check(out.get().sum(keepdims=True), np.array([length]), name=name)
    except ct.CheckError as error:
        print(error)
""")
print(child.stdout or child.stderr, end="")

# %% idle-claim
share = 100 * idle[2]
ct.claim(
    id="reduction-idle-threads",
    source="CUDATutorial 09/03",
    statement={
        "en": "Adding while loading removes the idle threads: share of threads without an addition, over all steps.",
        "zh": "边加载边加，就不再有空闲的线程：所有步骤中没有加法可做的线程所占的比例。",
    },
    predicted=0,
    measured=round(share, 1),
    unit="%",
    verdict="confirmed" if share < 1 else "refuted",
)
