# ---
# jupyter:
#   cudatut:
#     title: {en: "Modulo, mask, strided index: solutions", zh: "取模、掩码、跨步索引：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# The modulo with constants, and a tree over rows of any width.

# %% setup
import numpy as np
from ladder import LADDER, Sum

import cudatut as ct
from cudatut.ladder import read_rung

rng = ct.rng(0)

# %% solution-1
CONSTANT = read_rung("reduction/interleaved_solutions.cu")
for m in ct.RAGGED:
    for dtype in ("float32", "int32"):
        Sum(m, dtype).check(CONSTANT)

# %% bench-1
n = ct.size(1 << 25, 1 << 14)
LADDER.bench(
    ["naive", CONSTANT, "interleaved"], n=n, name="modulo by constants"
)

# %% solution-2
row_sums = ct.Kernel(
    """
extern "C" __global__ void row_sums(const float* in, float* out, int width) {
  extern __shared__ float sums[];  // one element per thread: its size is known at launch only
  int t = threadIdx.x;
  sums[t] = in[blockIdx.x * width + t];
  __syncthreads();
  for (int step = 1; step < width; step *= 2) {
    int left = 2 * step * t;
    if (left + step < width) sums[left] += sums[left + step];  // is there a right neighbor?
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
""",
    "row_sums",
)
for width in (1, 2, 31, 33, 100, 1000, 1024):
    rows = 77
    x_host = rng.standard_normal((rows, width), dtype="float32")
    out = ct.empty(rows, "float32")
    row_sums(
        ct.to_device(x_host),
        out,
        width,
        grid=rows,
        block=width,
        shared=4 * width,
    )
    ct.check(
        out,
        x_host.sum(axis=1, dtype="float64"),
        name=f"width={width}",
        atol=1e-6 * float(np.abs(x_host).sum(axis=1).max()),
    )
