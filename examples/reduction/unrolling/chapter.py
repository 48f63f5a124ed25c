# ---
# jupyter:
#   cudatut:
#     title: {en: "Unrolled, and the last warp on its own", zh: "循环展开，最后一个线程束单独处理"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {n: [33554432, 16384, 1048576], turns: [256, 4]}
# ---

# %% [markdown]
# The fifth rung: fewer instructions and fewer barriers. The last warp works on
# its own, in the order that `__syncwarp` gives. First as a whole program.

# %% program
import numpy as np
import cudatut as ct

count = 1 << 20
x = ct.to_device(ct.rng(0).standard_normal(count, dtype="float32"))
kernel = ct.Kernel("reduction/ladder/unrolled.cu", "reduce_unrolled")

source, left = x, count
while left > 1:
    blocks = ct.cdiv(left, 2 * 256)  # two elements per thread
    partial = ct.empty(blocks, "float32")
    kernel(source, partial, left, grid=blocks, block=256)
    source, left = partial, blocks

ct.check(source, [x.get().sum(dtype="float64")], rtol=0, atol=0.1)

# %% setup
import re

from cudatut.book.reduction.ladder.ladder import LADDER, Sum

gpu = ct.device()
TWO, UNROLLED = LADDER["two_per_thread"], LADDER["unrolled"]
# Between the two: the last warp on its own, the loop still a loop.
LAST_WARP = ct.read_rung("reduction/unrolling/last_warp.cu")
n = 33_554_432
block = 256
problem = Sum(n)

# %% [markdown]
# Does the compiler unroll by itself? The PTX says it: a barrier for each round,
# or one barrier in a loop.

# %% ptx
FILE = "reduction/unrolling/unrolling.cu"
source = ct.paths.resolve_source(FILE)
ct.paths.note_read(source)


def barriers_written(*defines):
    """How often `bar.sync` stands in what the compiler makes of the tree."""
    from pycuda.compiler import compile as compile_to

    ptx = compile_to(
        source.read_text(),
        nvcc=str(ct.find_nvcc()),
        options=[f"-D{define}" for define in defines],
        no_extern_c=True,
        arch=gpu.arch,
        target="ptx",
    ).decode()
    tree = ptx[ptx.index(".entry tree(") :].partition("\n}")[0]
    return len(re.findall(r"\bbar(?:rier)?\.sync", tree))


ct.facts(
    "barriers in the code of the tree, block of 256",
    {
        "half = blockDim.x / 2": barriers_written("BOUND=blockDim.x"),
        "half = BLOCK / 2": barriers_written(),
        "half = BLOCK / 2, unroll 1": barriers_written("KEEP_LOOP"),
    },
)

# %% tree-check
numbers = ct.rng(0).integers(-1000, 1001, 256, dtype="int32")
for name, defines in (
    ("half = blockDim.x / 2", {"BOUND": "blockDim.x"}),
    ("half = BLOCK / 2", {}),
    ("half = BLOCK / 2, unroll 1", {"KEEP_LOOP": 1}),
):
    data = ct.to_device(numbers)
    ct.Kernel(FILE, "tree", defines=defines)(data, grid=1, block=256)
    ct.check(data[:1], [numbers.sum()], name=name)

# %% [markdown]
# Barriers and instructions, counted before anything is timed.

# %% predict
# Counted in the machine code that nvcc 13.0 makes for sm_90: per warp outside
# the loop, per warp and round, rounds with __syncthreads, and at the end by
# warp 0.
CODE = {
    "two_per_thread": (31 + 1, 12, 8, 9),
    "last_warp": (31 + 1, 11, 3, 62),
    "unrolled": (42, 0, 3, 62),  # the rounds are among the 42
}
# Warp instructions per us: 4 schedulers per SM.
issued = gpu.sm_count * 4 * gpu.clock_khz / 1e3
blocks = ct.cdiv(n, 2 * block) + ct.cdiv(n, (2 * block) ** 2) + 1


def instructions(kernel):
    """Warp instructions of one block."""
    outside, in_round, rounds, at_end = CODE[kernel]
    return block // 32 * (outside + rounds * in_round) + at_end


def time_to_issue(kernel):
    """Microseconds in which all schedulers issue all instructions."""
    return blocks * instructions(kernel) / issued


ct.table(
    "prediction",
    {
        kernel: {
            "barriers per block": 1 + rounds,
            "instructions per block": instructions(kernel),
            "instructions per element": instructions(kernel) / (2 * block),
            "time to issue": time_to_issue(kernel),
        }
        for kernel, (_, _, rounds, _) in CODE.items()
    },
    corner="kernel",
    units={"time to issue": "us"},
)
by_bytes = 4 * n / ct.limits.bandwidth() / 1e3
unrolling_saves = 1 - instructions("unrolled") / instructions("last_warp")
ct.facts(
    "limits of the time",
    {
        "time of the bytes": (by_bytes, "us"),
        "instructions that unrolling saves": (100 * unrolling_saves, "%"),
    },
)

# %% [markdown]
# What a barrier costs when nobody is late: many of them, one after the other.

# %% barrier-cycles
turns = 256
cost = {}
for name, defines in (("__syncthreads", {}), ("__syncwarp", {"OF_WARP": 1})):
    kernel = ct.Kernel(FILE, "barriers", defines=defines)
    for threads in (32, 256, 1024):
        cycles = ct.empty(1, "int64")
        for _ in range(2):  # the first run fetches the code
            kernel(cycles, turns, grid=1, block=threads)
        took = int(cycles.get()[0]) / (16 * turns)
        cost.setdefault(f"{threads}", {})[name] = took
ct.table("cycles of one barrier, nobody late", cost, corner="threads per block")

# %% [markdown]
# One launch of the rung, in the open.

# %% launch
unrolled = UNROLLED.compile(BLOCK=256, ELEMENT="float")
grid = ct.cdiv(n, 2 * 256)
partial = ct.empty(grid, "float32")
unrolled(problem.x, partial, n, grid=grid, block=256)

# %% [markdown]
# Right before fast, then the time.

# %% check
problem.check(TWO)
problem.check(UNROLLED)
problem.check(LAST_WARP)
# Integers: no tolerance, which could hide a lost block.
integers = Sum(n, "int32")
integers.check(UNROLLED)
integers.check(LAST_WARP)
for dtype in ("float32", "int32"):
    for m in ct.RAGGED:
        for rung in (UNROLLED, LAST_WARP):
            Sum(m, dtype).check(rung)
ragged = Sum(ct.RAGGED[-1])
for threads in UNROLLED.numbers("blocks"):
    ragged.check(UNROLLED, threads)

# %% bench
rungs = [*LADDER.upto("two_per_thread"), LAST_WARP, UNROLLED]
bench = LADDER.bench(rungs, data=problem.host, name=f"sum of {n} float32")

# %% compare
us = {kernel: bench[kernel].median_us for kernel in CODE}
ct.table(
    "predicted and measured",
    {
        kernel: {
            "predicted by instructions": time_to_issue(kernel),
            "predicted by bytes": by_bytes,
            "measured": us[kernel],
            "explained by instructions": 100
            * time_to_issue(kernel)
            / us[kernel],
        }
        for kernel in CODE
    },
    corner="kernel",
    units={
        "predicted by instructions": "us",
        "predicted by bytes": "us",
        "measured": "us",
        "explained by instructions": "%",
    },
)
ct.facts(
    "last_warp to unrolled",
    {
        "instructions that unrolling saves": (100 * unrolling_saves, "%"),
        "time that unrolling saves": (
            100 * (1 - us["unrolled"] / us["last_warp"]),
            "%",
        ),
    },
)

# %% [markdown]
# What the warps wait for, by the profiler.

# %% counters
METRICS = [
    "smsp__inst_executed.sum",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
]
# The profiler runs this file again. The first launches are the three of the
# program, then the one of the cell 'launch', then those of the check.
launches = ct.profile_launches(
    "reduction/unrolling",
    kernel="regex:^reduce_(two_per_thread|unrolled)$",
    metrics=METRICS,
    launches=5,
)
table = {}
if launches:
    profiled = {"two_per_thread": launches[4], "unrolled": launches[3]}
    for kernel, got in profiled.items():
        each = got[METRICS[0]] / ((1 << 20) // (2 * block))
        table[kernel] = {
            "instructions, predicted": instructions(kernel),
            "instructions, measured": each,
            "schedulers issue": got[METRICS[1]],
            # Waiting warps per issued instruction, times the instructions of a
            # block: cycles, summed over its warps.
            "wait at barriers": round(each * got[METRICS[2]]),
            "wait for global memory": round(each * got[METRICS[3]]),
        }
    ct.table(
        "of one block",
        table,
        corner="kernel",
        units={
            "schedulers issue": "%",
            "wait at barriers": "cycles",
            "wait for global memory": "cycles",
        },
    )

# %% [markdown]
# The last warp of older tutorials: `volatile` in place of barriers.

# %% volatile-runs
ones = ct.to_device(np.ones(256 * 4096, "int32"))


def sums_of_ones(runs, **defines):
    """How many sums are not 256, and one of the sums."""
    kernel = ct.Kernel(FILE, "reduce_volatile", defines=defines)
    wrong, sums = 0, [0]
    for _ in range(runs):
        out = ct.empty(4096, "int32")
        kernel(ones, out, grid=4096, block=256)
        sums = out.get()
        wrong += int((sums != 256).sum())
    return {
        "sums": 4096 * runs,
        "wrong": wrong,
        "one of the sums": int(sums[0]),
    }


# Not under a sanitizer, which would complain of the race: the next cell asks it.
runs = 0 if ct.tool.running() else 100
ct.table(
    "256 ones per block, the last warp without barriers",
    {
        "volatile": sums_of_ones(runs),
        "no volatile": sums_of_ones(runs, NO_VOLATILE=1),
    },
    corner="kernel",
)

# %% [markdown]
# Racecheck looks for words that two lanes touch with no barrier between.

# %% racecheck
report = ct.sanitize(
    """
import numpy as np
import cudatut as ct

kernel = ct.Kernel("reduction/unrolling/unrolling.cu", "reduce_volatile")
out = ct.empty(1, "int32")
kernel(ct.to_device(np.ones(256, "int32")), out, grid=1, block=256)
print(out.get())
""",
    tool="racecheck",
)
log = [
    line.removeprefix("=========").strip() for line in report.log.split("\n")
]
races = [k for k, line in enumerate(log) if "Race reported" in line]
# The one of the last step, with the writes that belong to it.
for k in sorted(races, key=lambda k: log[k].rpartition(":")[2])[-1:]:
    print("\n".join(log[k : k + 3]))
print("\n".join(line for line in log if "SUMMARY" in line))
