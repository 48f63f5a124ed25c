# ---
# jupyter:
#   cudatut:
#     title: {en: "Modulo, mask, strided index: claims", zh: "取模、掩码、跨步索引：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     sizes: {n: [33554432, 16384, 1048576]}
# ---

# %% [markdown]
# What another source says of the modulo, tried.

# %% setup
import numpy as np
import cudatut as ct

from ladder import LADDER
from cudatut.ladder import read_rung

gpu = ct.device()
NAIVE, INTERLEAVED = LADDER["naive"], LADDER["interleaved"]
MASK = read_rung("reduction/mask.cu")
n = 33_554_432
block = 256

# %% modulo-claim
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

# %% divergence-claim
# The mask leaves the same lanes idle as the modulo does. What it saves cannot be
# due to divergence.
bench = LADDER.bench([NAIVE, MASK, INTERLEAVED], n=n, name="three ways")
times = {
    name: bench[name].median_us for name in ("naive", "mask", "interleaved")
}
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
