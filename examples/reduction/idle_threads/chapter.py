# ---
# jupyter:
#   cudatut:
#     title: {en: "Two elements per thread", zh: "每个线程两个元素"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {n: [33554432, 16384, 1048576]}
# ---

# %% [markdown]
# The fourth rung: add while loading, so that one tree serves twice as many
# elements. First as a whole program.

# %% program
import numpy as np
import cudatut as ct

count = 1 << 20
x = ct.to_device(ct.rng(0).standard_normal(count, dtype="float32"))
kernel = ct.Kernel(
    "reduction/ladder/two_per_thread.cu", "reduce_two_per_thread"
)

source, left = x, count
while left > 1:
    blocks = ct.cdiv(left, 2 * 256)  # two elements per thread
    partial = ct.empty(blocks, "float32")
    kernel(source, partial, left, grid=blocks, block=256)
    source, left = partial, blocks

ct.check(source, [x.get().sum(dtype="float64")], rtol=0, atol=0.1)

# %% setup
from cudatut.book.reduction.ladder.ladder import LADDER, Sum

gpu = ct.device()
SEQUENTIAL, TWO = LADDER["sequential"], LADDER["two_per_thread"]
n = 33_554_432
block = 256
problem = Sum(n)

# %% [markdown]
# Who adds how often, counted by the loop itself.

# %% count
FILE = "reduction/idle_threads/idle_threads.cu"
table, additions_of = {}, {}
for per_thread in (1, 2):
    count = ct.Kernel(
        FILE, "count_additions", defines={"PER_THREAD": per_thread}
    )
    additions, rounds = ct.empty(block, "int32"), ct.empty(1, "int32")
    count(additions, rounds, grid=1, block=block)
    added, steps = additions.get(), int(rounds.get()[0]) + per_thread - 1
    additions_of[per_thread] = added
    table[f"{per_thread}"] = {
        "elements": per_thread * block,
        "additions": int(added.sum()),
        "threads that only load": int((added == 0).sum()),
        "steps": steps,
        "idle": 100 * (1 - added.sum() / (block * steps)),
    }
ct.table(
    "a full block",
    table,
    corner="elements per thread",
    units={"idle": "%"},
)

# %% count-check
# In the tree a thread adds once for each half that it lies below.
halves = block >> np.arange(1, 9)
in_tree = (np.arange(block)[:, None] < halves).sum(axis=1)
for per_thread, added in additions_of.items():
    name = f"{per_thread} per thread: additions"
    ct.check(added, in_tree + per_thread - 1, name=name)

# %% predict
# Counted in the machine code that nvcc 13.0 makes for sm_90: per warp before
# the loop, per warp and round, and at the end by warp 0.
CODE = {"sequential": (25, 12, 9), "two_per_thread": (31, 12, 9)}
PER_BLOCK = {"sequential": block, "two_per_thread": 2 * block}  # elements
# Warp instructions per us: 4 schedulers per SM.
issued = gpu.sm_count * 4 * gpu.clock_khz / 1e3


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
    """Microseconds in which all schedulers issue the whole sum's
    instructions."""
    return blocks(kernel, n) * instructions(kernel) / issued


ISSUE = "time to issue"
ct.table(
    "prediction",
    {
        kernel: {
            "blocks": blocks(kernel, n),
            "instructions per block": instructions(kernel),
            "instructions per element": instructions(kernel)
            / PER_BLOCK[kernel],
            ISSUE: time_to_issue(kernel),
        }
        for kernel in CODE
    },
    corner="kernel",
    units={ISSUE: "us"},
)
per_element = {
    kernel: instructions(kernel) / PER_BLOCK[kernel] for kernel in CODE
}
ct.facts(
    "limits of the time",
    {
        "instructions that are left": (
            100 * per_element["two_per_thread"] / per_element["sequential"],
            "%",
        ),
        "time of the bytes": (4 * n / ct.limits.bandwidth() / 1e3, "us"),
    },
)

# %% [markdown]
# Right before fast, then the time.

# %% check
problem.check(SEQUENTIAL)
problem.check(TWO)
# Integers: no tolerance, which could hide a lost block.
Sum(n, "int32").check(TWO)
LADDER.check(
    "two_per_thread",
    [{"n": m, "dtype": d} for d in ("float32", "int32") for m in ct.RAGGED],
)
# Where a tail ends between the two loads.
for m in (255, 256, 257, 511, 512, 513, 767, 768, 769):
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

# %% [markdown]
# What the profiler counts.

# %% counters
INSTRUCTIONS, READ = "smsp__inst_executed.sum", "dram__bytes_read.sum"
ISSUED = "smsp__issue_active.avg.pct_of_peak_sustained_active"
AT_BARRIER = "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"
# The profiler runs this file again. The first launches are the three of the
# program, then those of the check: three with one rung, then the other.
launches = ct.profile_launches(
    "reduction/idle_threads",
    kernel="regex:^reduce_(sequential|two_per_thread)$",
    metrics=[INSTRUCTIONS, READ, ISSUED, AT_BARRIER],
    launches=7,
)
table = {}
for kernel, counted in zip(CODE, launches[3::3]):
    made = counted[INSTRUCTIONS]
    table[kernel] = {
        "per block, predicted": instructions(kernel),
        "per block, measured": made / ((1 << 20) // PER_BLOCK[kernel]),
        "per element, measured": made / (1 << 20),
        "schedulers issue": counted[ISSUED],
        "wait at the barrier": counted[AT_BARRIER],
    }
if table:
    ct.table(
        "warp instructions",
        table,
        corner="kernel",
        units={"schedulers issue": "%", "wait at the barrier": "cycles"},
    )

# %% [markdown]
# The number of blocks, and the bounds, got wrong.


# %% grids
def grid_of_the_source(length, bs):
    return (length + bs - 1) // (2 * bs)


lengths = np.arange(1, 20 * block + 1)
lost = np.maximum(lengths - 2 * block * grid_of_the_source(lengths, block), 0)
ct.table(
    "grid = (len + bs - 1) / (2 * bs), bs = 256",
    {
        f"{m}": {
            "blocks": grid_of_the_source(m, block),
            "elements lost": int(lost[m - 1]),
        }
        for m in (1, 256, 257, 512, 513, 768, 769, 1000, 1024)
    },
    corner="len",
)
ct.facts(
    "all lengths up to 5120",
    {
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

# %% bounds
# Two wrong bounds, in a process of its own: what lies past the end there is a
# red zone of ct.
child = ct.isolated("""
import numpy as np
import cudatut as ct

length = 1000
ones, out = ct.to_device(np.ones(length, "int32")), ct.empty(2, "int32")
for name in ("sum_first_bound", "sum_second_bound"):
    kernel = ct.Kernel("reduction/idle_threads/idle_threads.cu", name)
    kernel(ones, out, length, grid=2, block=256)
    try:
        ct.check(out.get().sum(keepdims=True), np.array([length]), name=name)
    except ct.CheckError as error:
        print(error)
""")
print(child.stdout or child.stderr, end="")
