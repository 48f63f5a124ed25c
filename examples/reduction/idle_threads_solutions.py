# ---
# jupyter:
#   cudatut:
#     title: {en: "Two elements per thread: solutions", zh: "每个线程两个元素：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# More elements per thread, and a tree for any number of threads.

# %% setup
from dataclasses import replace

import numpy as np
from ladder import LADDER, Sum

import cudatut as ct
from cudatut.ladder import read_rung

gpu = ct.device()
n, block = ct.size(1 << 25, 1 << 14), 256

# %% solution-1
FILE = "reduction/idle_threads_solutions.cu"
several = replace(read_rung(FILE), name="several")
for dtype in ("float32", "int32"):
    for m in (n, 0, *ct.RAGGED):
        Sum(m, dtype).check(several)

# %% bench-1
# Where does it end? Only the first launch, which does nearly all of the work.
problem = Sum(n, "int32")
launches = {}
for per_thread in (1, 2, 4, 8, 16):
    kernel = ct.Kernel(
        FILE,
        "reduce_several",
        defines={"BLOCK": block, "ELEMENT": "int", "PER_THREAD": per_thread},
    )
    grid = ct.cdiv(n, per_thread * block)
    partial = ct.empty(grid, "int32")

    def launch(kernel=kernel, partial=partial, grid=grid):
        kernel(problem.x, partial, n, grid=grid, block=block)

    launch()
    total = partial.get().sum(dtype="int64").astype("int32")
    ct.check(
        np.array([total]), problem.expected, name=f"{per_thread} per thread"
    )
    launches[f"{per_thread} per thread"] = launch
ct.bench(launches, bytes=problem.bytes, name="elements per thread", rounds=30)

# %% try-1
# What `python -m cudatut try reduction` does with the file: check, then time beside the ladder.
LADDER.bench(
    ["sequential", "two_per_thread", several],
    n=n,
    name=f"sum of {n} float32",
    rounds=30,
)

# %% solution-2
any_block = ct.Kernel(
    """
__global__ void any_block(const int* in, int* out, int n) {
  extern __shared__ int sums[];
  int t = threadIdx.x, i = blockIdx.x * (2 * blockDim.x) + t;
  int sum = i < n ? in[i] : 0;
  if (i + blockDim.x < n) sum += in[i + blockDim.x];
  sums[t] = sum;
  __syncthreads();
  for (int left = blockDim.x; left > 1;) {
    int half = (left + 1) / 2;  // rounded up: the one in the middle waits for the next round
    if (t < left - half) sums[t] += sums[t + half];
    __syncthreads();
    left = half;
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
""",
    "any_block",
)
for threads in (1, 31, 33, 48, 100, 256, 1000):
    for m in (1, 31, 33, 2 * threads + 1, ct.RAGGED[-1]):
        host = ct.rng(m).integers(-1000, 1001, m, dtype="int32")
        grid = ct.cdiv(m, 2 * threads)
        out = ct.empty(grid, "int32")
        any_block(
            ct.to_device(host),
            out,
            m,
            grid=grid,
            block=threads,
            shared=4 * threads,
        )
        ct.check(
            out.get().sum(keepdims=True),
            host.sum(keepdims=True),
            name=f"block={threads}, n={m}",
        )
