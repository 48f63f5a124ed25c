# ---
# jupyter:
#   cudatut:
#     title: {en: "Modulo, mask, strided index: solutions", zh: "取模、掩码、跨步索引：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     sizes: {n: [33554432, 16384]}
# ---

# %% [markdown]
# The modulo with constants, and a tree over rows of any width.

# %% given-1
import numpy as np
import cudatut as ct

# %% solution-1
CONSTANT = ct.Kernel(
    """
__global__ void reduce_constant(const int* in, int* out, int n) {
  __shared__ int sums[256];
  const unsigned t = threadIdx.x, i = blockIdx.x * 256 + t;
  sums[t] = i < n ? in[i] : 0;
  __syncthreads();
#pragma unroll
  for (unsigned step = 1; step < 256; step *= 2) {
    if (t % (2 * step) == 0) sums[t] += sums[t + step];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
""",
    "reduce_constant",
)

# %% check-1
import cudatut as ct

for n in ct.RAGGED:
    x = ct.rng(n).integers(-1000, 1001, n, dtype="int32")
    blocks = ct.cdiv(n, 256)
    out = ct.empty(blocks, "int32")
    CONSTANT(ct.to_device(x), out, n, grid=blocks, block=256)
    sums = np.add.reduceat(x, np.arange(0, n, 256))
    ct.check(out, sums, name=f"n={n}")

# %% [markdown]
# The same kernel as a rung, in a file of its own, beside the others.

# %% rung-1
from cudatut.book.reduction.ladder.ladder import LADDER, Sum

CONSTANT = ct.read_rung("reduction/interleaved/interleaved_solutions.cu")
for n in ct.RAGGED:
    for dtype in ("float32", "int32"):
        Sum(n, dtype).check(CONSTANT)

# %% bench-1
n = 33_554_432
bench = LADDER.bench(
    ["naive", CONSTANT, "interleaved"], n=n, name="modulo by constants"
)

# %% given-2
import numpy as np
import cudatut as ct

# %% solution-2
row_sums = ct.Kernel(
    """
extern "C" __global__ void row_sums(const float* in, float* out, int width) {
  extern __shared__ float sums[];  // one element per thread
  int t = threadIdx.x;
  sums[t] = in[(long long)blockIdx.x * width + t];
  __syncthreads();
  for (int step = 1; step < width; step *= 2) {
    int left = 2 * step * t;
    // Is there a right neighbor?
    if (left + step < width) sums[left] += sums[left + step];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
""",
    "row_sums",
)

# %% check-2
import cudatut as ct

rows = 77
for width in (1, 2, 31, 33, 100, 1000, 1024):
    x = ct.rng(width).standard_normal((rows, width), dtype="float32")
    out = ct.empty(rows, "float32")
    row_sums(
        ct.to_device(x), out, width, grid=rows, block=width, shared=4 * width
    )
    most = 1e-6 * float(np.abs(x).sum(axis=1).max())
    sums = x.sum(axis=1, dtype="float64")
    ct.check(out, sums, name=f"width={width}", atol=most)
