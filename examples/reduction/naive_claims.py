# ---
# jupyter:
#   cudatut:
#     title: {en: "A sum as a tree: claims", zh: "用一棵树求和：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
#     sizes: {n: [33554432, 16384]}
# ---

# %% [markdown]
# What other sources say of the tree, tried.

# %% setup
import math

import numpy as np
from ladder import LADDER, Sum

import cudatut as ct

gpu = ct.device()
n = 33_554_432
block = 256

# %% rounds-claim
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
out = ct.empty(1, "int32")
count_rounds(out, grid=1, block=block)
measured = int(out.get()[0])
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

# %% one-launch-claim
blocks = ct.cdiv(n, block)
kernel = LADDER["naive"].compile(BLOCK=block, ELEMENT="int")
numbers = Sum(n, "int32")
partial = ct.empty(blocks, "int32")
kernel(numbers.x, partial, n, grid=blocks, block=block)
total, first = int(numbers.expected[0]), int(partial.get()[0])
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

# %% tail-claim
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
