# ---
# jupyter:
#   cudatut:
#     title: {en: "A sum as a tree", zh: "用一棵树求和"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {n: [33554432, 16384, 1048576], side: [1000000, 10000, 1048576]}
# ---

# %% [markdown]
# The first rung: a tree in shared memory per block, launched again until one
# number is left. First the whole program, as one would write it for one array.

# %% program
import numpy as np
import cudatut as ct

side = 1_000_000
x = ct.to_device(ct.rng(0).standard_normal(side, dtype="float32"))
reduce_naive = ct.Kernel("reduction/ladder/naive.cu", "reduce_naive")

source, left = x, side
while left > 1:
    blocks = ct.cdiv(left, 256)
    partial = ct.empty(blocks, "float32")
    reduce_naive(source, partial, left, grid=blocks, block=256)
    source, left = partial, blocks

ct.check(source, [x.get().sum(dtype="float64")], rtol=0, atol=0.1)

# %% [markdown]
# From here on the ladder launches it: it knows how every rung of this part is
# launched, checked and compared.

# %% setup
import math

from cudatut.book.reduction.ladder.ladder import LADDER, Sum

gpu = ct.device()
NAIVE = LADDER["naive"]
n = 33_554_432
block = 256
problem = Sum(n)

# %% [markdown]
# How many rounds does the tree take? A kernel runs the same loop and counts.

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


for threads in (1, 2, 32, 1024):
    right = [int(math.log2(threads))]
    ct.check([rounds_of(threads)], right, name=f"block={threads}: rounds")


ct.table(
    "rounds of the tree",
    {
        f"{threads}": {
            "measured": rounds_of(threads),
            "log2(block)": math.log2(threads),
        }
        for threads in (8, 32, 256)
    },
    corner="threads per block",
)

# %% [markdown]
# Two bounds for the time, computed before anything is timed.

# %% predict
blocks = [ct.cdiv(n, block)]
while blocks[-1] > 1:
    blocks.append(ct.cdiv(blocks[-1], block))
moved = 4 * (
    n + sum(blocks) + sum(blocks[:-1])
)  # every launch reads what the one before wrote
bandwidth = ct.limits.bandwidth()

# Counted in the machine code that nvcc 13.0 makes of the kernel for sm_90, with
# 256 threads.
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

# %% [markdown]
# Right before fast: the whole array, no elements and ragged lengths, both
# types, every block size. A float sum of so many elements may be off by more
# than one lost block; integers may not be off at all.

# %% check
problem.check(NAIVE)
Sum(n, "int32").check(NAIVE)
LADDER.check(
    "naive",
    [
        {"n": m, "dtype": d}
        for d in ("float32", "int32")
        for m in (0, *ct.RAGGED)
    ],
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
by_block = np.add.reduceat(numbers.host, np.arange(0, n, block))
ct.check(partial, by_block, name="partial sums")
ct.facts(
    "after one launch",
    {
        "sum of all": total,
        "sum of the first 256": int(numbers.host[:block].sum()),
        "out[0]": first,
        "partial sums": partial.size,
    },
)
# %% [markdown]
# The time, beside CUB, and what the two bounds say of it.

# %% bench
bench = LADDER.bench(["naive"], n=n, name=f"sum of {n} float32")

# %% compare
by_instructions = sum(blocks) * per_block / issued
took = bench["naive"].median_us
ct.facts(
    "naive: predicted and measured",
    {
        "predicted by bytes": (moved / bandwidth / 1e3, "us"),
        "predicted by instructions": (by_instructions, "us"),
        "measured": (took, "us"),
        "explained by instructions": (100 * by_instructions / took, "%"),
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
    counted = counters["smsp__inst_executed.sum"]
    ct.facts(
        "warp instructions per block",
        {"predicted": per_block, "measured": counted / ((1 << 20) // block)},
    )

# %% [markdown]
# The same kernel with other block sizes.

# %% block-sizes
ct.bench(
    {f"block={b}": problem.launcher(NAIVE, b) for b in NAIVE.numbers("blocks")},
    bytes=problem.bytes,
    name="threads per block",
    rounds=20,
)
for threads in (32, 256):
    ct.show(NAIVE.compile(BLOCK=threads, ELEMENT="float").resources(threads))

# %% [markdown]
# A tree that leaves the tail to chance.

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
