# ---
# jupyter:
#   cudatut:
#     title: {en: "Modulo, mask, strided index: claims", zh: "取模、掩码、跨步索引：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     sizes: {n: [33554432, 16384, 1048576], rows: [16384, 8]}
# ---

# %% [markdown]
# What another source says of the modulo and of divergence, tried.

# %% setup
from dataclasses import replace

import numpy as np
import cudatut as ct

from cudatut.book.reduction.ladder.ladder import LADDER

SOURCE = "CUDATutorial 09/01"
NAIVE = LADDER["naive"]
MASK = ct.read_rung("reduction/interleaved/mask.cu")
n = 33_554_432
block = 256

# %% [markdown]
# Does a thread wait until another has divided? The lanes of one warp beside one
# thread, 32 warps beside one thread, and lanes that are made to take turns.

# %% modulo-claim
CHAIN = """
__global__ void chain(int* last, long long* ticks, int divisor, int turns) {
  int x = 1000003 + threadIdx.x;
  const long long start = clock64();
#ifdef IN_TURN
  for (int lane = 0; lane < blockDim.x; ++lane)
    if (lane == threadIdx.x)
#endif
#pragma unroll 4
      for (int turn = 0; turn < turns; ++turn) {
        // It changes, else its reciprocal would be taken once, up front; and
        // each turn needs the one before.
        int other = divisor + (x & 2);
#ifdef MASK
        x = 1000003 + (x & (other - 1));
#else
        x = 1000003 + x % other;
#endif
      }
  __syncthreads();  // the clock stops when the last lane is done
  const long long stop = clock64();
  last[threadIdx.x] = x;
  if (threadIdx.x == 0) ticks[0] = stop - start;
}
"""
TOGETHER = ct.Kernel(CHAIN, "chain")
IN_TURN = ct.Kernel(CHAIN, "chain", defines={"IN_TURN": 1})
MASKED = ct.Kernel(CHAIN, "chain", defines={"MASK": 1})
turns, divisor = 512, 256


def cycles(kernel, threads):
    last, ticks = ct.empty(threads, "int32"), ct.empty(1, "int64")
    for _ in range(2):  # the first run fetches the code
        kernel(last, ticks, divisor, turns, grid=1, block=threads)
    x = 1_000_003 + np.arange(threads)
    for _ in range(turns):
        other = divisor + (x & 2)
        x = 1_000_003 + (x & (other - 1) if kernel is MASKED else x % other)
    how = {TOGETHER: "all at once", IN_TURN: "in turn", MASKED: "a mask"}
    ct.check(last, x, name=f"{threads} threads, {how[kernel]}")
    return int(ticks.get()[0])


one = cycles(TOGETHER, 1)
ct.facts(
    "time of the chain, in times of one thread",
    {
        "32 lanes of a warp": cycles(TOGETHER, 32) / one,
        "32 lanes, made to take turns": cycles(IN_TURN, 32) / one,
        "32 warps of an SM": cycles(TOGETHER, 1024) / one,
        "32 warps, a mask in place of the modulo": cycles(MASKED, 1024)
        / cycles(MASKED, 1),
    },
)
ct.claim(
    id="reduction-modulo-waits",
    source=SOURCE,
    place={"en": "section 1.2", "zh": "1.2 节"},
    form="said",
    statement={
        "en": "A modulo is hard to do in parallel: some threads may have to "
        "wait until others have finished their division. Time of all threads / "
        "of one thread, at least a tenth longer if any of them waits:",
        "zh": "取模难以并行：有些线程可能要等其他线程做完除法。全部线程的用时 / "
        "单个线程的用时，有线程等待时至少长十分之一：",
    },
    expected=1.1,
    depends={
        "en": "whether they are in one warp: its lanes divide together; "
        "warps share the units of the SM, with any other instruction "
        "as well (the row with the mask)",
        "zh": "是否在同一个线程束：线程束内的 lane 同时做除法；各线程束则共"
        "用 SM 的部件，换成别的指令也是如此（见掩码那一行）",
    },
    sides=(
        (
            {"en": "1024 threads on one SM", "zh": "同一个 SM 上 1024 个线程"},
            cycles(TOGETHER, 1024) / one,
        ),
        (
            {
                "en": "the 32 threads of one warp",
                "zh": "一个线程束的 32 个线程",
            },
            cycles(TOGETHER, 32) / one,
        ),
    ),
    unit="×",
    rule="above",
    control=(
        {
            "en": "32 lanes that are made to take turns: a clock that misses "
            "waiting would miss it here",
            "zh": "让 32 个 lane 轮流做；若是计时漏掉了等待，这里也会漏",
        },
        cycles(IN_TURN, 32) / one,
        (8.0, 64.0),
    ),
)

# %% [markdown]
# The source names two problems of the first kernel, divergence and the modulo.
# The mask leaves the lanes as they are and takes only the modulo away.

# %% expensive-claim
bench = LADDER.bench(
    [NAIVE, replace(NAIVE, name="naive again"), MASK, "sequential"],
    n=n,
    name="one problem at a time",
)
times = {row.name: row.median_us for row in bench.rows}
ct.claim(
    id="reduction-modulo-expensive",
    source=SOURCE,
    place={
        "en": "section 1, the sentence below the listing",
        "zh": "第 1 节，代码之后的一句",
    },
    form="said",
    statement={
        "en": "The modulo is one of two problems of the first kernel: it is "
        "expensive. Time with it / with a mask that picks the same threads:",
        "zh": "取模是第一个 kernel 的两个问题之一：它很昂贵。"
        "用取模的时间 / 用掩码挑选同样线程的时间：",
    },
    expected=1.0,
    measured=times["naive"] / times["mask"],
    unit="×",
    rule="above",
    control=(
        {"en": "the modulo against itself", "zh": "取模与它自己相比"},
        times["naive"] / times["naive again"],
        (0.97, 1.03),
    ),
)

# %% [markdown]
# The other problem: the mask diverges, sequential addressing does not, and has
# as many instructions and no bank conflicts either. A second pair of kernels
# does the same with a long body of the `if`.

# %% divergence-claim
LONG = """
__global__ void long_body(const float* in, float* out, float one, int turns) {
  __shared__ float sums[256];
  const int t = threadIdx.x;
  sums[t] = in[blockIdx.x * 256ll + t];
  __syncthreads();
#ifdef MASK
  for (int step = 1; step < 256; step *= 2) {
    if ((t & (2 * step - 1)) == 0) {
#else
  for (int step = 128; step > 0; step /= 2) {
    if (t < step) {
#endif
      float sum = sums[t] + sums[t + step];
      for (int turn = 0; turn < turns; ++turn) sum *= one;
      sums[t] = sum;
    }
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
"""
rows = 16_384
ones = ct.to_device(np.ones((rows, block), "float32"))


def long_body(**defines):
    """A call that sums each row, with 64 multiplications by 1 for each
    addition."""
    kernel, out = ct.Kernel(LONG, "long_body", defines), ct.empty(rows, "f4")

    def run():
        kernel(ones, out, 1.0, 64, grid=rows, block=block)

    run()
    ct.check(out, np.full(rows, block, "float32"), name="long body")
    return run


long = ct.bench(
    {"mask": long_body(MASK=1), "sequential": long_body()},
    name="a long body of the if",
)
ct.claim(
    id="reduction-divergence-slow",
    source=SOURCE,
    place={
        "en": "section 1, the sentence below the listing",
        "zh": "第 1 节，代码之后的一句",
    },
    form="said",
    statement={
        "en": "Divergence is the other problem of the first kernel. Time of "
        "the mask, in whose warps few lanes have work / of sequential "
        "addressing, in whose warps nearly always all or none have; a problem "
        "if it is at least 5 % (our limit):",
        "zh": "分支发散是第一个 kernel 的另一个问题。掩码的线程束里只有少数 lane "
        "有活，连续寻址的线程束里几乎总是全有或全无；前者的时间 / 后者的时间，"
        "至少多 5 %（我们定的界限）才算问题：",
    },
    expected=1.05,
    depends={
        "en": "the body of the if: a short one has no branch",
        "zh": "if 的主体：主体短就没有分支",
    },
    sides=(
        (
            {"en": "one addition, as there", "zh": "一次加法，与原文相同"},
            times["mask"] / times["sequential"],
        ),
        (
            {
                "en": "64 multiplications more in the body of the if",
                "zh": "在 if 的主体里再加 64 次乘法",
            },
            long["mask"].median_us / long["sequential"].median_us,
        ),
    ),
    unit="×",
    rule="above",
    control=(
        {
            "en": "the first kernel beside itself",
            "zh": "第一个 kernel 与自己相比",
        },
        times["naive"] / times["naive again"],
        (0.97, 1.03),
    ),
)

# %% [markdown]
# What the strided index is meant for, counted by the votes of the lanes.

# %% rounds-claim
votes = ct.Kernel(
    """
// working[round][warp]: how many lanes add
__global__ void votes(int* working, int strided) {
  int t = threadIdx.x, warps = blockDim.x / 32, round = 0;
  for (int step = 1; step < blockDim.x; step *= 2, ++round) {
    bool works = strided ? 2 * step * t < blockDim.x : t % (2 * step) == 0;
    unsigned lanes = __ballot_sync(0xffffffffu, works);
    if (t % 32 == 0) working[round * warps + t / 32] = __popc(lanes);
  }
}
""",
    "votes",
)


def divergent(strided):
    """Warps of which some lanes add and some do not, in the first four
    rounds."""
    working = ct.empty((8, block // 32), "int32")
    votes(working, strided, grid=1, block=block)
    lanes = working.get()
    ct.check(lanes.sum(axis=1), 128 >> np.arange(8), name="threads at work")
    return tuple(int(k) for k in ((lanes > 0) & (lanes < 32)).sum(axis=1)[:4])


ct.claim(
    id="reduction-strided-rounds",
    source=SOURCE,
    place={
        "en": "section 2, below the second figure",
        "zh": "第 2 节，第二幅图之后",
    },
    form="said",
    statement={
        "en": "With blocks of 256 the strided index removes divergence from "
        "the first three rounds; it begins in the fourth, in one warp. Warps "
        "that diverge in rounds 1 to 4:",
        "zh": "每块 256 个线程时，跨步索引消除了前三轮的分支发散；从第四轮起，"
        "有一个线程束发散。第 1 到 4 轮发散的线程束数：",
    },
    expected=(0, 0, 0, 1),
    measured=divergent(strided=1),
    rule="equal",
    found="counted",
    control=(
        {"en": "with the modulo: all 8", "zh": "用取模：8 个全部发散"},
        divergent(strided=0),
        (8, 8, 8, 8),
    ),
)
