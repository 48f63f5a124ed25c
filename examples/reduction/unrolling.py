# ---
# jupyter:
#   cudatut:
#     title: {en: "Unrolled, and the last warp on its own", zh: "循环展开，最后一个线程束单独处理"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# The fifth rung: fewer instructions and fewer barriers, without the trick that Volta broke.

# %% setup
import re

import numpy as np
from ladder import LADDER, Sum

import cudatut as ct
from cudatut import nvcc, paths, tool
from cudatut.ladder import read_rung
from cudatut.profiler import profile_launches

gpu = ct.device()
TWO, UNROLLED = LADDER["two_per_thread"], LADDER["unrolled"]
LAST_WARP = read_rung(
    "reduction/last_warp.cu"
)  # between the two: the loop is still a loop
profiled_n = 1 << 20  # what a profiler sees
n, block = ct.size(1 << 25, 1 << 14, profiled=profiled_n), 256
problem = Sum(n)

# %% ptx
FILE = "reduction/unrolling.cu"
source = paths.resolve_source(FILE)
paths.note_read(source)


def barriers_written(*defines):
    """How often `bar.sync` stands in what the compiler makes of the tree."""
    from pycuda.compiler import compile as compile_to

    ptx = compile_to(
        source.read_text(),
        nvcc=str(nvcc.find_nvcc()),
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
        "written out would be": 1 + int(np.log2(block)),
    },
)

# %% predict
# Counted in the machine code that nvcc 13.0 makes for sm_90: per warp outside the loop, per warp
# and round, rounds with __syncthreads, and at the end by warp 0.
CODE = {
    "two_per_thread": (31 + 1, 12, 8, 9),
    "last_warp": (31 + 1, 11, 3, 62),
    "unrolled": (42, 0, 3, 62),  # the rounds are among the 42
}
BARRIERS = {name: 1 + rounds for name, (_, _, rounds, _) in CODE.items()}
issued = (
    gpu.sm_count * 4 * gpu.clock_khz / 1e3
)  # warp instructions per us: 4 schedulers per SM
blocks = ct.cdiv(n, 2 * block) + ct.cdiv(n, (2 * block) ** 2) + 1


def instructions(kernel):
    """Warp instructions of one block."""
    outside, in_round, rounds, at_end = CODE[kernel]
    return block // 32 * (outside + rounds * in_round) + at_end


for kernel in CODE:
    ct.facts(
        f"{kernel}: prediction",
        {
            "barriers per block": BARRIERS[kernel],
            "warp instructions per block": instructions(kernel),
            "warp instructions per element": instructions(kernel) / (2 * block),
            "time to issue": (blocks * instructions(kernel) / issued, "us"),
            "time of the bytes": (4 * n / ct.limits.bandwidth() / 1e3, "us"),
        },
    )

# %% barrier-cycles
turns, cost = ct.size(256, 4), {}
for name, defines in (("__syncthreads", {}), ("__syncwarp", {"OF_WARP": 1})):
    kernel = ct.Kernel(FILE, "barriers", defines=defines)
    for threads in (32, 256, 1024):
        cycles = ct.empty(1, "int64")
        for _ in range(2):  # the first run fetches the code
            kernel(cycles, turns, grid=1, block=threads)
        cost[name, threads] = int(cycles.get()[0]) / (16 * turns)
ct.facts(
    "one barrier, nobody late",
    {
        f"{name}, {threads} threads": (value, "cycles")
        for (name, threads), value in cost.items()
    },
)

# %% check
problem.check(TWO)
problem.check(UNROLLED)
problem.check(LAST_WARP)
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
for kernel in ("last_warp", "unrolled"):
    ct.facts(
        f"{kernel}: predicted and measured",
        {
            "predicted by instructions": (
                blocks * instructions(kernel) / issued,
                "us",
            ),
            "predicted by bytes": (4 * n / ct.limits.bandwidth() / 1e3, "us"),
            "measured": (us[kernel], "us"),
        },
    )

# %% unroll-claim
gain = us["last_warp"] / us["unrolled"]
ct.claim(
    id="reduction-full-unrolling",
    source="CUDATutorial 09/04",
    statement={
        "en": "After the last warp (484.01 us), unrolling the rest of the loop gains 1.4 % (477.23 us).",
        "zh": "最后一个线程束单独处理之后（484.01 us），再把循环完全展开，只快 1.4%（477.23 us）。",
    },
    predicted=100 * (484.01 / 477.23 - 1),
    measured=100 * (gain - 1),
    unit="%",
    verdict="confirmed" if abs(gain - 484.01 / 477.23) < 0.02 else "depends",
)

# %% counters
METRICS = [
    "smsp__inst_executed.sum",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
]
# Of the launches in the cell 'check': rung 4 sums in three of them, then rung 5 begins.
runs = profile_launches(
    "reduction/unrolling",
    kernel="regex:reduce_(two_per_thread|unrolled)",
    metrics=METRICS,
    launches=4,
)
counters = {"two_per_thread": runs[0], "unrolled": runs[3]} if runs else {}

# %% instructions
for kernel, got in counters.items():
    each = got[METRICS[0]] / (profiled_n // (2 * block))
    ct.facts(
        f"{kernel}: per block",
        {
            "warp instructions, predicted": instructions(kernel),
            "warp instructions, measured": each,
            "cycles in which a scheduler issues": (got[METRICS[1]], "%"),
            # The counters are waiting warps per issued instruction; with the instructions of a
            # block they become cycles, summed over its warps.
            "warps wait at barriers": (round(each * got[METRICS[2]]), "cycles"),
            "warps wait for global memory": (
                round(each * got[METRICS[3]]),
                "cycles",
            ),
        },
    )

# %% volatile-runs
ones = ct.to_device(np.ones(256 * 4096, "int32"))


def sums_of_ones(runs, **defines):
    """How many sums are not 256, and one of the sums."""
    kernel, wrong, sums = (
        ct.Kernel(FILE, "reduce_volatile", defines=defines),
        0,
        [0],
    )
    for _ in range(runs):
        out = ct.empty(4096, "int32")
        kernel(ones, out, grid=4096, block=256)
        sums = out.get()
        wrong += int((sums != 256).sum())
    return wrong, int(sums[0])


# Not under a sanitizer, which would complain of the race: that is the next cell.
runs = 0 if tool.running() else 100
with_it, (without_it, one_sum) = (
    sums_of_ones(runs)[0],
    sums_of_ones(runs, NO_VOLATILE=1),
)
ct.facts(
    "256 ones per block, the last warp without barriers",
    {
        "sums": 4096 * runs,
        "volatile: wrong sums": with_it,
        "no volatile: wrong sums": without_it,
        "no volatile, predicted: 7 of 64 words of 4": 7 * 4,
        "no volatile, one of the sums": one_sum,
    },
)

# %% racecheck
report = ct.sanitize(
    """
import numpy as np
import cudatut as ct

kernel = ct.Kernel("reduction/unrolling.cu", "reduce_volatile")
out = ct.empty(1, "int32")
kernel(ct.to_device(np.ones(256, "int32")), out, grid=1, block=256)
print(out.get())
""",
    tool="racecheck",
)
log = [
    line.removeprefix("=========").strip() for line in report.log.splitlines()
]
races = [number for number, line in enumerate(log) if "Race reported" in line]
# The one of the last step, with the writes that belong to it.
for number in sorted(races, key=lambda number: log[number].rpartition(":")[2])[
    -1:
]:
    print("\n".join(log[number : number + 3]))
print("\n".join(line for line in log if "SUMMARY" in line))

# %% volatile-claim
ct.claim(
    id="reduction-volatile-warp",
    source="CUDATutorial 09/04",
    statement={
        "en": "Inside one warp a volatile pointer is enough: the last six steps need no barrier. "
        "Hazards that racecheck should then report in them:",
        "zh": "在同一个线程束内，指针加上 volatile 就够了，最后六步不需要同步。那么 racecheck 在其中报告的冒险数应当是：",
    },
    predicted=0,
    measured=report.errors,
    unit="hazards",
    verdict="confirmed" if report.errors == 0 else "refuted",
)
