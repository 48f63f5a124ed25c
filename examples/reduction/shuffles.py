# ---
# jupyter:
#   cudatut:
#     title: {en: "Sums from register to register", zh: "在寄存器之间求和"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# The sixth rung: warp shuffles in place of shared memory, what they save and what they do not.

# %% setup
import numpy as np
from ladder import LADDER, Sum

import cudatut as ct
from cudatut import tool
from cudatut.profiler import profile_launches

gpu = ct.device()
UNROLLED, SHUFFLE = LADDER["unrolled"], LADDER["shuffle"]
profiled_n = 1 << 20  # what a profiler sees
n, block = ct.size(1 << 25, 1 << 14, profiled=profiled_n), 256
problem = Sum(n)

# %% lanes
FILE = "reduction/shuffles.cu"
values = np.arange(32, dtype="int32") + 1
down, butterfly = (
    ct.to_device(np.tile(values, 6)) for _ in range(2)
)  # 5 steps, and the start
ct.Kernel(FILE, "lanes")(
    ct.to_device(values), down, butterfly, grid=1, block=32
)

lane, a, b = np.arange(32), [values], [values]
for half in (16, 8, 4, 2, 1):
    source = np.where(
        lane + half < 32, lane + half, lane
    )  # past the end: the lane itself
    a.append(a[-1] + a[-1][source])
    b.append(b[-1] + b[-1][lane ^ half])
ct.check(down, np.concatenate(a), name="__shfl_down_sync, five steps")
ct.check(butterfly, np.concatenate(b), name="__shfl_xor_sync, five steps")
ct.facts(
    "after five steps",
    {
        "sum of 1 to 32": values.sum(),
        "down: lanes that hold it": (a[-1] == values.sum()).sum(),
        "down: lane 31 holds": a[-1][31],
        "butterfly: lanes that hold it": (b[-1] == values.sum()).sum(),
    },
)

# %% predict
# Counted in the machine code that nvcc 13.0 makes for sm_90: per warp, by the other warps at the
# end, by warp 0 at the end.
CODE = {"unrolled": (42, 0, 62), "shuffle": (41, 3, 27)}
BARRIERS = {"unrolled": 4, "shuffle": 1}
SHUFFLES = {"unrolled": 0, "shuffle": 8 * 5 + 5}
warps = block // 32
SHARED = {
    # every warp stores; three rounds by 4, 2 and 1 warps, then five by one: a load and a store each
    "unrolled": warps + 2 * (4 + 2 + 1) + 2 * 5,
    "shuffle": warps + 1,  # one store per warp, one load by warp 0
}
issued = (
    gpu.sm_count * 4 * gpu.clock_khz / 1e3
)  # warp instructions per us: 4 schedulers per SM
blocks = ct.cdiv(n, 2 * block) + ct.cdiv(n, (2 * block) ** 2) + 1


def instructions(kernel):
    """Warp instructions of one block."""
    each, others, first = CODE[kernel]
    return warps * each + (warps - 1) * others + first


for kernel in CODE:
    ct.facts(
        f"{kernel}: prediction, per block",
        {
            "barriers": BARRIERS[kernel],
            "wavefronts of shared memory": SHARED[kernel],
            "shuffles": SHUFFLES[kernel],
            "warp instructions": instructions(kernel),
            "time to issue, all blocks": (
                blocks * instructions(kernel) / issued,
                "us",
            ),
            "time of the bytes": (4 * n / ct.limits.bandwidth() / 1e3, "us"),
        },
    )

# %% three-ways
turns, ways = (
    ct.size(4096, 4),
    {"shared memory": "SHARED", "shuffle": "SHUFFLE"},
)
if gpu.compute_capability >= (8, 0):
    ways["redux, integers only"] = "REDUX"
cycles = {}
for name, by in ways.items():
    kernel = ct.Kernel(FILE, "sums_of_sums", defines={"BY": by})
    data, took = ct.to_device(np.ones(32, "int32")), ct.empty(1, "int64")
    kernel(data, took, 3, grid=1, block=32)
    ct.check(
        data, np.full(32, 32**3, "int32"), name=f"{name}: three sums of sums"
    )
    kernel(data, took, turns, grid=1, block=32)
    cycles[name] = int(took.get()[0]) / turns
ct.facts(
    "the sum of one warp",
    {name: (value, "cycles") for name, value in cycles.items()},
)

# %% check
problem.check(UNROLLED)
problem.check(SHUFFLE)
LADDER.check(
    "shuffle",
    [{"n": m, "dtype": d} for d in ("float32", "int32") for m in ct.RAGGED],
)
ragged = Sum(ct.RAGGED[-1])
for threads in SHUFFLE.numbers("blocks"):
    ragged.check(SHUFFLE, threads)

# %% bench
bench = LADDER.bench(
    LADDER.upto("shuffle"), data=problem.host, name=f"sum of {n} float32"
)

# %% compare
before, after = bench["unrolled"].median_us, bench["shuffle"].median_us
ct.facts(
    "shuffle: predicted and measured",
    {
        "predicted, if instructions decide": (
            before * instructions("shuffle") / instructions("unrolled"),
            "us",
        ),
        "predicted, if shared memory decides": (
            before * SHARED["shuffle"] / SHARED["unrolled"],
            "us",
        ),
        "predicted, if neither does": (before, "us"),
        "measured": (after, "us"),
    },
)

# %% counters
METRICS = [
    "smsp__inst_executed.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
]
# Of the launches in the cell 'check': rung 5 sums in three of them, then rung 6 begins.
runs = profile_launches(
    "reduction/shuffles",
    kernel="regex:reduce_(unrolled|shuffle)",
    metrics=METRICS,
    launches=4,
)
counters = {"unrolled": runs[0], "shuffle": runs[3]} if runs else {}

# %% traffic
for kernel, value in counters.items():
    launched = profiled_n // (2 * block)
    each = value[METRICS[0]] / launched
    ct.facts(
        f"{kernel}: per block",
        {
            "warp instructions, predicted": instructions(kernel),
            "warp instructions, measured": each,
            "wavefronts of loads and stores, predicted": SHARED[kernel],
            "wavefronts of loads and stores, measured": (
                value[METRICS[1]] + value[METRICS[2]]
            )
            / launched,
            "wavefronts, all of that pipe": value[METRICS[3]] / launched,
            # Waiting warps per issued instruction, times instructions of a block.
            "warps wait at barriers": (
                round(each * value[METRICS[4]]),
                "cycles",
            ),
            "warps wait for global memory": (
                round(each * value[METRICS[5]]),
                "cycles",
            ),
        },
    )

# %% shuffle-claim
SOURCE = "NVIDIA, CUDA Pro Tip: Do The Kepler Shuffle"
ratio = cycles["shared memory"] / cycles["shuffle"]
ct.claim(
    id="reduction-shuffle-one-for-three",
    source=SOURCE,
    statement={
        "en": "A shuffle is faster than shared memory, for it is one instruction in place of three "
        "(write, synchronize, read). Here the sum of one warp, alone:",
        "zh": "洗牌用一条指令代替三条（写、同步、读），所以比共享内存快。这里单独测一个线程束的求和：",
    },
    predicted="> 1",
    measured=round(ratio, 2),
    unit="times",
    verdict="confirmed" if ratio > 1.02 else "refuted",
)
whole = before / after
ct.claim(
    id="reduction-shuffle-always-faster",
    source=SOURCE,
    statement={
        "en": "A shuffle is always faster than a safe use of shared memory. Here the whole reduction:",
        "zh": "洗牌总比安全地使用共享内存快。这里测整个规约：",
    },
    predicted="> 1",
    measured=round(whole, 3),
    unit="times",
    verdict="confirmed"
    if whole > 1.02
    else "depends"
    if whole > 0.98
    else "refuted",
)

# %% staying
length = 20
fives = ct.to_device(np.full(length, 5, "int32"))
total, least = ct.empty(1, "int32"), ct.empty(1, "int32")
ct.Kernel(FILE, "sum_staying")(fives, total, least, length, grid=1, block=32)
ct.check(
    total,
    np.array([5 * length], "int32"),
    name="sum of 20 fives, all lanes stay",
)
ct.check(
    least, np.array([5], "int32"), name="least of 20 fives, all lanes stay"
)

# %% leaving
# Undefined behavior: nothing for a sanitizer, which would rightly complain.
leaving = ct.Kernel(FILE, "sum_leaving")
if not tool.running():
    leaving(fives, total, least, length, grid=1, block=32)
left_total, left_least = int(total.get()[0]), int(least.get()[0])
ct.facts(
    "20 fives, 12 lanes gone, __activemask in every step",
    {
        "sum, right": 5 * length,
        "sum, measured": left_total,
        "least, right": 5,
        "least, measured": left_least,
    },
)

# %% activemask-claim
ct.claim(
    id="reduction-activemask",
    source="Learn CUDA Programming, notes: warplevelPrimitiveReduction",
    statement={
        "en": "__activemask() as the mask of every step makes the shuffles right for whichever lanes are there. "
        "Sum and minimum of 20 fives:",
        "zh": "每一步都用 __activemask() 作掩码，不论剩下哪些线程，洗牌都正确。20 个 5 的和与最小值：",
    },
    predicted=f"{5 * length}, 5",
    measured=f"{left_total}, {left_least}",
    verdict="confirmed"
    if (left_total, left_least) == (5 * length, 5)
    else "refuted",
)

# %% ragged-block
# 48 threads: a warp and a half. BLOCK / 32 is 1, so the second warp has no place to leave its sum.
child = ct.isolated("""
import numpy as np
import cudatut as ct
from cudatut import ladder

sums = ladder.load("reduction")
problem = sums.problem(data=np.ones(96, "int32"), dtype="int32")
try:
    problem.check(sums["shuffle"], block=48)
except ct.CheckError as error:
    print(error)
""")
print(child.stdout or child.stderr, end="")
