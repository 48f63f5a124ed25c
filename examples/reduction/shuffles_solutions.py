# ---
# jupyter:
#   cudatut:
#     title: {en: "Warp shuffles: solutions", zh: "线程束洗牌：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# A sum that every thread gets, and a block of any size.

# %% setup
import numpy as np

import cudatut as ct

rng = ct.rng(0)

# %% solution-1
shares = ct.Kernel(
    """
__device__ float to_all_lanes(float sum) {
  for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, half);
  return sum;
}

__global__ void shares(const float* x, float* out, int n) {
  __shared__ float of_warp[8];
  int t = threadIdx.x, lane = t % 32, i = blockIdx.x * 256 + t;
  float mine = i < n ? x[i] : 0.0f;
  float sum = to_all_lanes(mine);
  if (lane == 0) of_warp[t / 32] = sum;
  __syncthreads();
  sum = to_all_lanes(lane < 8 ? of_warp[lane] : 0.0f);  // every warp for itself: no second barrier
  if (i < n) out[i] = mine / sum;
}
""",
    "shares",
)
for m in ct.RAGGED:
    x_host = rng.random(m, dtype="float32") + np.float32(0.5)
    out = ct.empty(m, "float32")
    shares(ct.to_device(x_host), out, m, grid=ct.cdiv(m, 256), block=256)
    sums = np.add.reduceat(x_host.astype("float64"), np.arange(0, m, 256))
    ct.check(out, x_host / np.repeat(sums, 256)[:m], name=f"shares, n={m}")

# %% solution-2
any_block = ct.Kernel(
    """
// Sum over the first `lanes` lanes of a warp; only lane 0 holds it.
__device__ int warp_sum(int sum, int lanes) {
  unsigned mask = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;  // the lanes that exist
  int lane = threadIdx.x % 32;
  for (int half = 16; half > 0; half /= 2) {
    int right = __shfl_down_sync(mask, sum, half);
    if (lane + half < lanes) sum += right;  // from a lane that does not exist: not used
  }
  return sum;
}

__global__ void any_block(const int* in, int* out, int n) {
  __shared__ int of_warp[32];
  int t = threadIdx.x, warp = t / 32, warps = (blockDim.x + 31) / 32;  // rounded up
  int i = blockIdx.x * (2 * blockDim.x) + t;
  int sum = i < n ? in[i] : 0;
  if (i + blockDim.x < n) sum += in[i + blockDim.x];
  sum = warp_sum(sum, min(32, blockDim.x - 32 * warp));
  if (t % 32 == 0) of_warp[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    int lanes = min(32, blockDim.x);
    sum = 0;
    for (int w = t; w < warps; w += lanes) sum += of_warp[w];
    sum = warp_sum(sum, lanes);
    if (t == 0) out[blockIdx.x] = sum;
  }
}
""",
    "any_block",
)
for threads in (1, 31, 33, 48, 100, 256, 1000):
    for m in (1, 31, 33, 2 * threads + 1, ct.RAGGED[-1]):
        host = rng.integers(-1000, 1001, m, dtype="int32")
        grid = ct.cdiv(m, 2 * threads)
        out = ct.empty(grid, "int32")
        any_block(ct.to_device(host), out, m, grid=grid, block=threads)
        ct.check(
            out.get().sum(keepdims=True),
            host.sum(keepdims=True),
            name=f"block={threads}, n={m}",
        )
