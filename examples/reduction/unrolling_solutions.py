# ---
# jupyter:
#   cudatut:
#     title: {en: "Unrolling: solutions", zh: "循环展开：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# A last warp without a modulo, and one with half of the waiting.

# %% setup
from dataclasses import replace

from ladder import LADDER, Sum

import cudatut as ct
from cudatut.ladder import read_rung

n = ct.size(1 << 25, 1 << 14)

# %% solution-1
lean = replace(read_rung("reduction/unrolling_solutions.cu"), name="lean")
for dtype in ("float32", "int32"):
    for m in (n, 0, *ct.RAGGED):
        Sum(m, dtype).check(lean)
ragged = Sum(1_111_111)
for threads in lean.numbers("blocks"):
    ragged.check(lean, threads)

# %% bench-1
# What `python -m cudatut try reduction` does with the file after the checks.
LADDER.bench(
    ["two_per_thread", "unrolled", lean],
    n=n,
    name=f"sum of {n} float32",
    rounds=50,
)

# %% solution-2
one_wait = ct.Kernel(
    """
__global__ void one_wait(const int* in, int* out, int n) {
  __shared__ int sums[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  sums[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int half = 128; half > 32; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  if (t < 32) {
    for (int half = 32; half > 0; half /= 2) {
      // Read: words half to 2 * half - 1. Written: words 0 to half - 1. No word is both.
      if (t < half) sums[t] += sums[t + half];
      __syncwarp();  // the next step reads what this one wrote
    }
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
""",
    "one_wait",
)
for m in ct.RAGGED:
    host = ct.rng(m).integers(-1000, 1001, m, dtype="int32")
    grid = ct.cdiv(m, 256)
    out = ct.empty(grid, "int32")
    one_wait(ct.to_device(host), out, m, grid=grid, block=256)
    ct.check(
        out.get().sum(keepdims=True),
        host.sum(keepdims=True),
        name=f"one_wait, n={m}",
    )
