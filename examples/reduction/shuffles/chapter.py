# ---
# jupyter:
#   cudatut:
#     title: {en: "Sums from register to register", zh: "在寄存器之间求和"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {n: [33554432, 16384, 1048576], turns: [4096, 4]}
# ---

# %% [markdown]
# The sixth rung: warp shuffles instead of shared memory, what they save and
# what they do not. First as a whole program.

# %% program
import numpy as np
import cudatut as ct

count = 1 << 20
x = ct.to_device(ct.rng(0).standard_normal(count, dtype="float32"))
kernel = ct.Kernel("reduction/ladder/shuffle.cu", "reduce_shuffle")

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
UNROLLED, SHUFFLE = LADDER["unrolled"], LADDER["shuffle"]
n = 33_554_432
block = 256
problem = Sum(n)

# %% [markdown]
# Tree and butterfly step by step, beside the same index arithmetic in NumPy.

# %% lanes
FILE = "reduction/shuffles/shuffles.cu"
values = np.arange(32, dtype="int32") + 1
# The start and five steps, 32 lanes each.
down, butterfly = (ct.to_device(np.tile(values, 6)) for _ in range(2))
lanes = ct.Kernel(FILE, "lanes")
lanes(ct.to_device(values), down, butterfly, grid=1, block=32)

lane, a, b = np.arange(32), [values], [values]
for half in (16, 8, 4, 2, 1):
    # Past the end: the lane itself.
    source = np.where(lane + half < 32, lane + half, lane)
    a.append(a[-1] + a[-1][source])
    b.append(b[-1] + b[-1][lane ^ half])
ct.check(down, np.concatenate(a), name="__shfl_down_sync, five steps")
ct.check(butterfly, np.concatenate(b), name="__shfl_xor_sync, five steps")
ct.table(
    "after five steps",
    {
        name: {
            "sum of 1 to 32": values.sum(),
            "lanes that hold it": (last == values.sum()).sum(),
            "lane 31 holds": last[31],
        }
        for name, last in (("tree", a[-1]), ("butterfly", b[-1]))
    },
    corner="order",
)

# %% [markdown]
# What a block does, counted before anything is timed.

# %% predict
# Counted in the machine code that nvcc 13.0 makes for sm_90: per warp, by the
# other warps at the end, by warp 0 at the end.
CODE = {"unrolled": (42, 0, 62), "shuffle": (41, 3, 27)}
BARRIERS = {"unrolled": 4, "shuffle": 1}
SHUFFLES = {"unrolled": 0, "shuffle": 8 * 5 + 5}
warps = block // 32
SHARED = {
    # Every warp stores; three rounds by 4, 2 and 1 warps, then five by one: a
    # load and a store each.
    "unrolled": warps + 2 * (4 + 2 + 1) + 2 * 5,
    "shuffle": warps + 1,  # one store per warp, one load by warp 0
}
# Warp instructions per us: 4 schedulers per SM.
issued = gpu.sm_count * 4 * gpu.clock_khz / 1e3
blocks = ct.cdiv(n, 2 * block) + ct.cdiv(n, (2 * block) ** 2) + 1


def instructions(kernel):
    """Warp instructions of one block."""
    each, others, first = CODE[kernel]
    return warps * each + (warps - 1) * others + first


ct.table(
    "prediction, of one block",
    {
        kernel: {
            "barriers": BARRIERS[kernel],
            "passes through shared memory": SHARED[kernel],
            "shuffles": SHUFFLES[kernel],
            "instructions": instructions(kernel),
        }
        for kernel in CODE
    },
    corner="kernel",
)
ct.facts(
    "limits of the time",
    {
        "time to issue, shuffle": (
            blocks * instructions("shuffle") / issued,
            "us",
        ),
        "time of the bytes": (4 * n / ct.limits.bandwidth() / 1e3, "us"),
    },
)

# %% [markdown]
# One warp alone, which sums, and sums the sums, four thousand times over.

# %% three-ways
turns = 4096
ways = {"shared memory": "SHARED", "shuffle": "SHUFFLE"}
if gpu.compute_capability >= (8, 0):
    ways["redux, integers only"] = "REDUX"
cycles = {}
for name, by in ways.items():
    kernel = ct.Kernel(FILE, "sums_of_sums", defines={"BY": by})
    data, took = ct.to_device(np.ones(32, "int32")), ct.empty(1, "int64")
    kernel(data, took, 3, grid=1, block=32)
    expected = np.full(32, 32**3, "int32")
    ct.check(data, expected, name=f"{name}: three sums of sums")
    kernel(data, took, turns, grid=1, block=32)
    cycles[name] = int(took.get()[0]) / turns
ct.facts(
    "the sum of one warp",
    {
        **{name: (value, "cycles") for name, value in cycles.items()},
        "shared memory against shuffle": (
            cycles["shared memory"] / cycles["shuffle"],
            "times",
        ),
    },
)

# %% [markdown]
# One launch of the rung, in the open.

# %% launch
shuffle = SHUFFLE.compile(BLOCK=256, ELEMENT="float")
grid = ct.cdiv(n, 2 * 256)
partial = ct.empty(grid, "float32")
shuffle(problem.x, partial, n, grid=grid, block=256)

# %% [markdown]
# Right before fast, then the time.

# %% check
problem.check(UNROLLED)
problem.check(SHUFFLE)
# Integers: no tolerance, which could hide a lost block.
Sum(n, "int32").check(SHUFFLE)
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

# %% [markdown]
# What the profiler counts.

# %% counters
PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
STALLED = "smsp__average_warps_issue_stalled"
METRICS = [
    "smsp__inst_executed.sum",
    f"{PASSES}_op_ld.sum",
    f"{PASSES}_op_st.sum",
    f"{PASSES}.sum",
    f"{STALLED}_barrier_per_issue_active.ratio",
    f"{STALLED}_long_scoreboard_per_issue_active.ratio",
]
# The profiler runs this file again. The first launches are the three of the
# program, then the one of the cell 'launch', then those of the check.
launches = ct.profile_launches(
    "reduction/shuffles",
    kernel="regex:^reduce_(unrolled|shuffle)$",
    metrics=METRICS,
    launches=5,
)
table = {}
if launches:
    profiled = {"unrolled": launches[4], "shuffle": launches[3]}
    for kernel, value in profiled.items():
        launched = (1 << 20) // (2 * block)
        each = value[METRICS[0]] / launched
        table[kernel] = {
            "instructions": each,
            "loads and stores": (value[METRICS[1]] + value[METRICS[2]])
            / launched,
            "all of that pipe": value[METRICS[3]] / launched,
            # Waiting warps per issued instruction, times the instructions of a
            # block: cycles, summed over its warps.
            "wait at barriers": round(each * value[METRICS[4]]),
            "wait for global memory": round(each * value[METRICS[5]]),
        }
    ct.table(
        "of one block",
        table,
        corner="kernel",
        units={
            "loads and stores": "passes",
            "all of that pipe": "passes",
            "wait at barriers": "cycles",
            "wait for global memory": "cycles",
        },
    )

# %% [markdown]
# The mask: all lanes stay, or lanes that have left are asked.

# %% staying
length = 20
fives = ct.to_device(np.full(length, 5, "int32"))
total, least = ct.empty(1, "int32"), ct.empty(1, "int32")
staying = ct.Kernel(FILE, "sum_staying")
staying(fives, total, least, length, grid=1, block=32)
ct.check(total, np.array([100], "int32"), name="sum of 20 fives")
ct.check(least, np.array([5], "int32"), name="least of 20 fives")

# %% leaving
# Undefined behavior: nothing for a sanitizer, which would rightly complain.
leaving = ct.Kernel(FILE, "sum_leaving")
if not ct.tool.running():
    leaving(fives, total, least, length, grid=1, block=32)
ct.table(
    "20 fives, 12 lanes gone, __activemask in every step",
    {
        "sum": {"right": 5 * length, "measured": int(total.get()[0])},
        "minimum": {"right": 5, "measured": int(least.get()[0])},
    },
)

# %% [markdown]
# A block that is no multiple of 32.

# %% ragged-block
# 48 threads: a warp and a half. BLOCK / 32 is 1, so the second warp has no
# place to leave its sum.
child = ct.isolated("""
import numpy as np
import cudatut as ct

sums = ct.load_ladder("reduction")
problem = sums.problem(data=np.ones(96, "int32"), dtype="int32")
try:
    problem.check(sums["shuffle"], block=48)
except ct.CheckError as error:
    print(error)
""")
print(child.stdout or child.stderr, end="")
