# ---
# jupyter:
#   cudatut:
#     title: {en: "Modulo, mask, strided index", zh: "取模、掩码、跨步索引"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# Three ways to pick the same pairs: what a modulo costs, and what idle lanes cost.

# %% setup
import numpy as np
from ladder import LADDER, Sum

import cudatut as ct
from cudatut.ladder import read_rung
from cudatut.profiler import profile_kernels

gpu = ct.device()
NAIVE, INTERLEAVED = LADDER["naive"], LADDER["interleaved"]
MASK = read_rung("reduction/mask.cu")
profiled_n = 1 << 20  # what a profiler sees
n, block = ct.size(1 << 25, 1 << 14, profiled=profiled_n), 256

# %% active
steps = 2 ** np.arange(int(np.log2(block)))[:, None]  # one row per round
thread = np.arange(block)[None, :]
WORKS = {
    "naive": thread % (2 * steps) == 0,
    "interleaved": 2 * steps * thread < block,
}
for name, works in WORKS.items():
    warps = works.reshape(len(steps), -1, 32).any(axis=2).sum(axis=1)
    ct.facts(
        f"{name}: warps with work",
        {f"step {step}": int(count) for step, count in zip(steps[:, 0], warps)}
        | {"sum": int(warps.sum())},
    )

# %% active-check
ballots = ct.Kernel(
    """
__global__ void ballots(int* lanes, int strided) {  // lanes[round][warp]: how many add
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

# %% modulo
CHAIN = """
__global__ void chain(int* last, long long* ticks, int divisor, int turns) {
  int x = 1000003 + threadIdx.x;
  const long long start = clock64();
#pragma unroll 4
  for (int turn = 0; turn < turns; ++turn) {
    int other = divisor + (x & 2);  // changes, else its reciprocal would be taken once, up front
    x = 1000003 + (MODULO ? x % other : x & (other - 1));  // each turn needs the one before
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


modulo_1, modulo_32 = cycles(MODULO, 1), cycles(MODULO, 32)
and_1, and_32 = cycles(AND, 1), cycles(AND, 32)
ct.facts(
    "one turn of the chain",
    {
        "%, 1 lane": (modulo_1, "cycles"),
        "%, 32 lanes": (modulo_32, "cycles"),
        "&, 1 lane": (and_1, "cycles"),
        "&, 32 lanes": (and_32, "cycles"),
    },
)
ct.claim(
    id="reduction-modulo-waits",
    source="CUDATutorial 09/01",
    statement={
        "en": "A modulo is slow because it is hard to do in parallel: the threads wait for one another. "
        "Then 32 lanes need up to 32 times as long as one.",
        "zh": "取模慢，是因为它难以并行，线程要互相等待。照此说来，32 个 lane 的用时最多可达 1 个的 32 倍。",
    },
    predicted=32.0,
    measured=modulo_32 / modulo_1,
    unit="×",
    verdict="refuted" if modulo_32 < 1.5 * modulo_1 else "confirmed",
)

# %% predict
# Counted in the machine code that nvcc 13.0 makes for sm_90, as in the chapter before.
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
for name in CODE:
    ct.facts(
        f"{name}: prediction",
        {
            "warp instructions per block": per_block(name),
            "time to issue them": (blocks * per_block(name) / issued, "us"),
            "speed-up over naive": per_block("naive") / per_block(name),
        },
    )

# %% check
problem = Sum(n)
for rung in (MASK, INTERLEAVED):
    problem.check(rung)
    for m in ct.RAGGED:
        for dtype in ("float32", "int32"):
            Sum(m, dtype).check(rung)
ragged = Sum(ct.RAGGED[-1])
for threads in INTERLEAVED.numbers("blocks"):
    ragged.check(INTERLEAVED, threads)

# %% bench
bench = LADDER.bench(
    [NAIVE, MASK, INTERLEAVED], n=n, name=f"sum of {n} float32"
)

# %% compare
times = {name: bench[name].median_us for name in CODE}
for name in CODE:
    ct.facts(
        f"{name}: predicted and measured",
        {
            "predicted at least": (blocks * per_block(name) / issued, "us"),
            "measured": (times[name], "us"),
            "predicted speed-up": per_block("naive") / per_block(name),
            "measured speed-up": times["naive"] / times[name],
        },
    )

# %% counters
METRICS = [
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed_per_inst_executed.ratio",
    "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
]
found = profile_kernels(
    "reduction/interleaved", ["reduce_mask", "reduce_interleaved"], METRICS
)
counters = {
    kernel.removeprefix("reduce_"): profile for kernel, profile in found.items()
}

# %% instructions
for name, profile in counters.items():
    if profile:
        ct.facts(
            f"{name}: warp instructions per block",
            {
                "predicted": per_block(name),
                "measured": profile.metrics["smsp__inst_executed.sum"]["value"]
                / (profiled_n // block),
            },
        )

# %% divergence-claim
# The mask leaves the same lanes idle as the modulo does. What it saves cannot be due to divergence.
share = (times["naive"] - times["mask"]) / (
    times["naive"] - times["interleaved"]
)
ct.claim(
    id="reduction-strided-divergence",
    source="CUDATutorial 09/01",
    statement={
        "en": "The strided index is faster because the lanes of a warp no longer diverge. Then a mask, "
        "which leaves them as divergent, has no share in the gain.",
        "zh": "跨步索引更快，是因为线程束内不再分支发散。照此说来，掩码照旧发散，收益应当是跨步索引的 0%。",
    },
    predicted=0.0,
    measured=100 * share,
    unit="%",
    verdict="confirmed"
    if share < 0.25
    else "depends"
    if share < 0.75
    else "refuted",
)
