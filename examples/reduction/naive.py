# ---
# jupyter:
#   cudatut:
#     title: {en: "A sum as a tree", zh: "用一棵树求和"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# The first rung: a tree in shared memory per block, launched again until one number is left.

# %% setup
import math

import numpy as np
from ladder import LADDER, Sum

import cudatut as ct

gpu = ct.device()
NAIVE = LADDER["naive"]
profiled_n = 1 << 20  # what a profiler sees
n, block = ct.size(1 << 25, 1 << 14, profiled=profiled_n), 256
problem = Sum(n)

# %% rounds
count_rounds = ct.Kernel(
    """
__global__ void count_rounds(int* out) {
  int rounds = 0;
  for (int step = 1; step < blockDim.x; step *= 2) rounds += 1;
  if (threadIdx.x == 0) out[0] = rounds;
}
""",
    "count_rounds",
)


def rounds_of(threads):
    out = ct.empty(1, "int32")
    count_rounds(out, grid=1, block=threads)
    return int(out.get()[0])


for threads in (8, 32, 256):
    ct.facts(
        f"rounds, {threads} threads",
        {
            "log2(block)": math.log2(threads),
            "log2(block) - 1": math.log2(threads) - 1,
            "block ** 0.5": threads**0.5,
            "measured": rounds_of(threads),
        },
    )

# %% rounds-claim
measured = rounds_of(block)
ct.claim(
    id="reduction-rounds",
    source="CUDATutorial 08",
    statement={
        "en": "A tree over a block of 256 takes log2(256) - 1 rounds.",
        "zh": "256 个线程的线程块，树要走 log2(256) - 1 轮。",
    },
    predicted=int(math.log2(block)) - 1,
    measured=measured,
    verdict="confirmed" if measured == math.log2(block) - 1 else "refuted",
)

# %% predict
blocks = [ct.cdiv(n, block)]
while blocks[-1] > 1:
    blocks.append(ct.cdiv(blocks[-1], block))
moved = 4 * (
    n + sum(blocks) + sum(blocks[:-1])
)  # every launch reads what the one before wrote
bandwidth = ct.limits.bandwidth()

# Counted in the machine code that nvcc 13.0 makes of the kernel for sm_90, with 256 threads.
BEFORE, IN_LOOP, LAST = (
    26,
    34,
    9,
)  # per warp; per warp and round; by warp 0 at the end
rounds = int(math.log2(block))
per_block = block // 32 * (BEFORE + rounds * IN_LOOP + 1) + LAST
issued = (
    gpu.sm_count * 4 * gpu.clock_khz / 1e3
)  # warp instructions per us: 4 schedulers per SM
ct.facts(
    "prediction",
    {
        "launches": len(blocks),
        "blocks": " + ".join(map(str, blocks)),
        "bytes": (moved / 1e6, "MB"),
        "bytes of partial sums": (moved / 1e6 - 4 * n / 1e6, "MB"),
        "time of the bytes": (moved / bandwidth / 1e3, "us"),
        "warp instructions per block": per_block,
        "warp instructions": (sum(blocks) * per_block / 1e6, "million"),
        "time to issue them": (sum(blocks) * per_block / issued, "us"),
    },
)

# %% check
problem.check(NAIVE)
LADDER.check(
    "naive",
    [{"n": m, "dtype": d} for d in ("float32", "int32") for m in ct.RAGGED],
)
ragged = Sum(ct.RAGGED[-1])
for threads in NAIVE.numbers("blocks"):
    ragged.check(NAIVE, threads)

# %% one-launch
kernel = NAIVE.compile(BLOCK=block, ELEMENT="int")
numbers = Sum(n, "int32")
partial = ct.empty(blocks[0], "int32")
kernel(numbers.x, partial, n, grid=blocks[0], block=block)
total, first = int(numbers.expected[0]), int(partial.get()[0])
ct.facts(
    "after one launch",
    {
        "sum of all": total,
        "sum of the first 256": int(numbers.host[:block].sum()),
        "out[0]": first,
        "partial sums": partial.size,
    },
)
ct.claim(
    id="reduction-total-in-one-launch",
    source="CUDATutorial 08",
    statement={
        "en": "After the launch the first thread of the grid holds the total.",
        "zh": "启动一次之后，网格的第一个线程就拿到了总和。",
    },
    predicted=total,
    measured=first,
    verdict="confirmed" if total == first else "refuted",
)

# %% bench
bench = LADDER.bench(["naive"], n=n, name=f"sum of {n} float32")

# %% compare
ct.facts(
    "naive: predicted and measured",
    {
        "predicted by bytes": (moved / bandwidth / 1e3, "us"),
        "predicted by instructions": (sum(blocks) * per_block / issued, "us"),
        "measured": (bench["naive"].median_us, "us"),
    },
)

# %% counters
counters = ct.profile(
    "reduction/naive",
    kernel="reduce_naive",
    metrics=[
        "smsp__inst_executed.sum",
        "dram__bytes_read.sum",
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
    ],
)

# %% instructions
if counters:
    counted = counters.metrics["smsp__inst_executed.sum"]["value"]
    ct.facts(
        "warp instructions per block",
        {"predicted": per_block, "measured": counted / (profiled_n // block)},
    )

# %% block-sizes
ct.bench(
    {f"block={b}": problem.launcher(NAIVE, b) for b in NAIVE.numbers("blocks")},
    bytes=problem.bytes,
    name="threads per block",
    rounds=20,
)
for threads in (32, 256):
    ct.show(NAIVE.compile(BLOCK=threads, ELEMENT="float").resources(threads))

# %% tail
LEAVE = """
__global__ void leave_ones(int value) {
  __shared__ volatile int sums[256];
  sums[threadIdx.x] = value;  // nobody reads it: shared memory simply keeps it
}
"""
NO_FILL = """
__global__ void sum_no_fill(const int* in, int* out, int n) {
  __shared__ int sums[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  if (i < n) sums[t] = in[i];  // and past the end: whatever was there
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
"""
leave_ones, sum_no_fill = (
    ct.Kernel(LEAVE, "leave_ones"),
    ct.Kernel(NO_FILL, "sum_no_fill"),
)
length = 1000
ones, out = ct.to_device(np.ones(length, "int32")), ct.empty(4, "int32")
leave_ones(1, grid=32 * gpu.sm_count, block=256)
sum_no_fill(ones, out, length, grid=4, block=256)
got = int(out.get().sum())
ct.facts(
    "1000 ones, 4 blocks of 256, no zero fill",
    {
        "right": length,
        "threads without an element": 4 * 256 - length,
        "predicted if every one of them adds a leftover 1": 4 * 256,
        "measured": got,
    },
)
ct.claim(
    id="reduction-no-zero-fill",
    source="CUDATutorial 09/02-09/04",
    statement={
        "en": "A tree without a zero fill and without a guard sums any length; here 1000 ones.",
        "zh": "不补零、也不判断边界的树，对任意长度都能求和；这里是 1000 个 1。",
    },
    predicted=length,
    measured=got,
    verdict="confirmed" if got == length else "refuted",
)
