# ---
# jupyter:
#   cudatut:
#     title: {en: "Modulo, mask, strided index", zh: "取模、掩码、跨步索引"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {n: [33554432, 16384, 1048576]}
# ---

# %% [markdown]
# Three ways to pick the same pairs: what a modulo costs, and what idle lanes
# cost. First the second rung as a whole program, for one array.

# %% program
import numpy as np
import cudatut as ct

count = 1 << 20
x = ct.to_device(ct.rng(0).standard_normal(count, dtype="float32"))
kernel = ct.Kernel("reduction/ladder/interleaved.cu", "reduce_interleaved")

source, left = x, count
while left > 1:
    blocks = ct.cdiv(left, 256)
    partial = ct.empty(blocks, "float32")
    kernel(source, partial, left, grid=blocks, block=256)
    source, left = partial, blocks

ct.check(source, [x.get().sum(dtype="float64")], rtol=0, atol=0.1)

# %% [markdown]
# From here on the ladder launches the rungs.

# %% setup
from cudatut.book.reduction.ladder.ladder import LADDER, Sum

gpu = ct.device()
NAIVE, INTERLEAVED = LADDER["naive"], LADDER["interleaved"]
MASK = ct.read_rung("reduction/interleaved/mask.cu")
n = 33_554_432
block = 256

# %% [markdown]
# Which warps have work in which round, by formula; then a kernel votes.

# %% active
steps = 2 ** np.arange(int(np.log2(block)))[:, None]  # one row per round
thread = np.arange(block)[None, :]
WORKS = {
    "naive": thread % (2 * steps) == 0,
    "interleaved": 2 * steps * thread < block,
}
table = {}
for step, row in zip(steps[:, 0], range(len(steps))):
    table[f"{step}"] = {
        name: int(works[row].reshape(-1, 32).any(axis=1).sum())
        for name, works in WORKS.items()
    }
table["sum"] = {
    name: sum(row[name] for row in table.values()) for name in WORKS
}
ct.table("warps with work", table, corner="step")

# %% active-check
ballots = ct.Kernel(
    """
// lanes[round][warp]: how many add
__global__ void ballots(int* lanes, int strided) {
  int t = threadIdx.x, warps = blockDim.x / 32, round = 0;
  for (int step = 1; step < blockDim.x; step *= 2, ++round) {
    bool works = strided ? 2 * step * t < blockDim.x : t % (2 * step) == 0;
    unsigned votes = __ballot_sync(0xffffffffu, works);
    if (t % 32 == 0) lanes[round * warps + t / 32] = __popc(votes);
  }
}
""",
    "ballots",
)
for strided, (name, works) in enumerate(WORKS.items()):
    expected = works.reshape(len(steps), -1, 32).sum(axis=2)
    lanes = ct.empty(expected.shape, "int32")
    ballots(lanes, strided, grid=1, block=block)
    ct.check(lanes, expected, name=f"{name}: lanes at work, per round and warp")

# %% [markdown]
# A chain of modulos: does one lane wait for another?

# %% modulo
CHAIN = """
__global__ void chain(int* last, long long* ticks, int divisor, int turns) {
  int x = 1000003 + threadIdx.x;
  const long long start = clock64();
#pragma unroll 4
  for (int turn = 0; turn < turns; ++turn) {
    // It changes, else its reciprocal would be taken once, up front; and each
    // turn needs the one before.
    int other = divisor + (x & 2);
    x = 1000003 + (MODULO ? x % other : x & (other - 1));
  }
  const long long stop = clock64();
  last[threadIdx.x] = x;
  if (threadIdx.x == 0) ticks[0] = stop - start;
}
"""
MODULO = ct.Kernel(CHAIN, "chain", defines={"MODULO": 1})
AND = ct.Kernel(CHAIN, "chain", defines={"MODULO": 0})
turns, divisor = 512, 256


def cycles(kernel, lanes):
    last, ticks = ct.empty(lanes, "int32"), ct.empty(1, "int64")
    for _ in range(2):  # the first run fetches the code
        kernel(last, ticks, divisor, turns, grid=1, block=lanes)
    x = 1_000_003 + np.arange(lanes)
    for _ in range(turns):
        other = divisor + (x & 2)
        x = 1_000_003 + (x % other if kernel is MODULO else x & (other - 1))
    ct.check(last, x, name=f"{'%' if kernel is MODULO else '&'}, {lanes} lanes")
    return int(ticks.get()[0]) / turns


table = {
    f"{lanes}": {"%": cycles(MODULO, lanes), "&": cycles(AND, lanes)}
    for lanes in (1, 32)
}
ct.table(
    "cycles of one turn of the chain",
    table,
    corner="lanes",
    units={"%": "cycles", "&": "cycles"},
)

# %% [markdown]
# The prediction from the number of instructions.

# %% predict
# Counted in the machine code that nvcc 13.0 makes for sm_90.
CODE = {
    "naive": (26, 34),
    "mask": (25, 12),
    "interleaved": (25, 14),
}  # before the loop, per round


def per_block(name):
    before, in_loop = CODE[name]
    return block // 32 * (before + len(steps) * in_loop + 1) + 9


blocks = ct.cdiv(n, block) + ct.cdiv(n, block**2)  # the launches that count
issued = gpu.sm_count * 4 * gpu.clock_khz / 1e3  # warp instructions per us
BOUND = "at least"
ct.table(
    "prediction",
    {
        name: {
            "instructions per block": per_block(name),
            BOUND: blocks * per_block(name) / issued,
            "speed-up": per_block("naive") / per_block(name),
        }
        for name in CODE
    },
    corner="kernel",
    units={BOUND: "us"},
)

# %% [markdown]
# Right before fast.

# %% check
problem = Sum(n)
integers = Sum(n, "int32")  # no tolerance, which could hide a lost block
for rung in (MASK, INTERLEAVED):
    problem.check(rung)
    integers.check(rung)
    for m in ct.RAGGED:
        for dtype in ("float32", "int32"):
            Sum(m, dtype).check(rung)
ragged = Sum(ct.RAGGED[-1])
for threads in INTERLEAVED.numbers("blocks"):
    ragged.check(INTERLEAVED, threads)

# %% [markdown]
# Then the time, beside CUB.

# %% bench
bench = LADDER.bench(
    [NAIVE, MASK, INTERLEAVED], n=n, name=f"sum of {n} float32"
)

# %% compare
times = {name: bench[name].median_us for name in CODE}
gained = times["naive"] - times["mask"]
ct.table(
    "predicted and measured",
    {
        name: {
            "predicted at least": blocks * per_block(name) / issued,
            "measured": times[name],
            "predicted speed-up": per_block("naive") / per_block(name),
            "measured speed-up": times["naive"] / times[name],
        }
        for name in CODE
    },
    corner="kernel",
    units={"predicted at least": "us", "measured": "us"},
)
ct.facts(
    "what the mask gains",
    {
        "share of the gain of the strided index": (
            100 * gained / (times["naive"] - times["interleaved"]),
            "%",
        )
    },
)

# %% [markdown]
# What the counters say.

# %% counters
METRICS = [
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed_per_inst_executed.ratio",
    "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
]
found = ct.profile_kernels(
    "reduction/interleaved", ["reduce_mask", "reduce_interleaved"], METRICS
)
counters = {
    kernel.removeprefix("reduce_"): profile for kernel, profile in found.items()
}

# %% instructions
if all(counters.values()):
    ct.table(
        "warp instructions per block",
        {
            name: {
                "predicted": per_block(name),
                "measured": profile[METRICS[0]] / ((1 << 20) // block),
            }
            for name, profile in counters.items()
        },
        corner="kernel",
    )
