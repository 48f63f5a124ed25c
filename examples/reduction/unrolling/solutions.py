# ---
# jupyter:
#   cudatut:
#     title: {en: "Unrolling: solutions", zh: "循环展开：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     sizes: {n: [33554432, 16384]}
# ---

# %% [markdown]
# A last warp that waits half as often, and one without a modulo.

# %% given-1
import numpy as np
import cudatut as ct

# %% solution-1
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
      // Read: words half to 2 * half - 1. Written: words 0 to half - 1.
      if (t < half) sums[t] += sums[t + half];
      __syncwarp();  // the next step reads what this one wrote
    }
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
""",
    "one_wait",
)

# %% check-1
import cudatut as ct

for n in ct.RAGGED:
    x = ct.rng(n).integers(-1000, 1001, n, dtype="int32")
    blocks = ct.cdiv(n, 256)
    out = ct.empty(blocks, "int32")
    one_wait(ct.to_device(x), out, n, grid=blocks, block=256)
    ct.check(out, np.add.reduceat(x, np.arange(0, n, 256)), name=f"n={n}")

# %% given-2
import numpy as np
import cudatut as ct

# %% solution-2
lean = ct.Kernel(
    """
__global__ void lean(const int* in, int* out, int n) {
  __shared__ int sums[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  int sum = i < n ? in[i] : 0;
  sums[t] = sum;
  __syncthreads();
  for (int half = 128; half >= 32; half /= 2) {
    if (t < half) sums[t] = sum = sum + sums[t + half];
    __syncthreads();
  }
  if (t < 32) {
#pragma unroll
    for (int half = 16; half > 0; half /= 2) {
      int right = sums[t ^ half];  // the partner: t with one bit changed
      __syncwarp();
      sums[t] = sum = sum + right;
      __syncwarp();
    }
  }
  if (t == 0) out[blockIdx.x] = sum;
}
""",
    "lean",
)

# %% check-2
import cudatut as ct

for n in ct.RAGGED:
    x = ct.rng(n).integers(-1000, 1001, n, dtype="int32")
    blocks = ct.cdiv(n, 256)
    out = ct.empty(blocks, "int32")
    lean(ct.to_device(x), out, n, grid=blocks, block=256)
    ct.check(out, np.add.reduceat(x, np.arange(0, n, 256)), name=f"n={n}")

# %% [markdown]
# The same last warp as a rung: what `python -m cudatut try reduction` does with
# such a file.

# %% rung-2
from dataclasses import replace

from cudatut.book.reduction.ladder.ladder import LADDER, Sum

n = 33_554_432
rung = replace(
    ct.read_rung("reduction/unrolling/unrolling_solutions.cu"), name="lean"
)
for dtype in ("float32", "int32"):
    for m in (n, 0, *ct.RAGGED):
        Sum(m, dtype).check(rung)
ragged = Sum(ct.RAGGED[-1])
for threads in rung.numbers("blocks"):
    ragged.check(rung, threads)
LADDER.bench(
    ["two_per_thread", "unrolled", rung],
    n=n,
    name=f"sum of {n} float32",
    rounds=50,
)
