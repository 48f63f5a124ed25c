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

# %% given-1
import numpy as np
import cudatut as ct

# %% solution-1
shares = ct.Kernel(
    """
__device__ float to_all_lanes(float sum) {
  for (int half = 16; half > 0; half /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, half);
  return sum;
}

__global__ void shares(const float* x, float* out, int n) {
  __shared__ float of_warp[8];
  int t = threadIdx.x, lane = t % 32, i = blockIdx.x * 256 + t;
  float mine = i < n ? x[i] : 0.0f;
  float sum = to_all_lanes(mine);
  if (lane == 0) of_warp[t / 32] = sum;
  __syncthreads();
  // Every warp sums the eight words for itself: no second barrier.
  sum = to_all_lanes(lane < 8 ? of_warp[lane] : 0.0f);
  if (i < n) out[i] = mine / sum;
}
""",
    "shares",
)

# %% check-1
import cudatut as ct

for n in ct.RAGGED:
    x = ct.rng(n).random(n, dtype="float32") + np.float32(0.5)
    out = ct.empty(n, "float32")
    shares(ct.to_device(x), out, n, grid=ct.cdiv(n, 256), block=256)
    sums = np.add.reduceat(x.astype("float64"), np.arange(0, n, 256))
    ct.check(out, x / np.repeat(sums, 256)[:n], name=f"n={n}")

# %% given-2
import numpy as np
import cudatut as ct

# %% solution-2
any_block = ct.Kernel(
    """
// Sum over the first `lanes` lanes of a warp; only lane 0 holds it.
__device__ int warp_sum(int sum, int lanes) {
  // The lanes that exist.
  unsigned mask = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
  int lane = threadIdx.x % 32;
  for (int half = 16; half > 0; half /= 2) {
    int right = __shfl_down_sync(mask, sum, half);
    if (lane + half < lanes) sum += right;  // not from a lane that is not there
  }
  return sum;
}

__global__ void any_block(const int* in, int* out, int n) {
  __shared__ int of_warp[32];
  int t = threadIdx.x;
  long long i = 2ll * blockDim.x * blockIdx.x + t;
  int sum = i < n ? in[i] : 0;
  if (i + blockDim.x < n) sum += in[i + blockDim.x];
  int warp = t / 32, warps = (blockDim.x + 31) / 32;  // rounded up
  sum = warp_sum(sum, min(32, blockDim.x - 32 * warp));
  if (t % 32 == 0) of_warp[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    int lanes = min(32, blockDim.x);
    sum = 0;
    for (int w = t; w < warps; w += lanes) sum += of_warp[w];
    sum = warp_sum(sum, lanes);
  }
  if (t == 0) out[blockIdx.x] = sum;
}
""",
    "any_block",
)

# %% check-2
import cudatut as ct

for threads in (1, 31, 33, 48, 100, 256, 1000):
    for n in (1, 31, 33, 2 * threads + 1, ct.RAGGED[-1]):
        x = ct.rng(n).integers(-1000, 1001, n, dtype="int32")
        grid = ct.cdiv(n, 2 * threads)
        out = ct.empty(grid, "int32")
        any_block(ct.to_device(x), out, n, grid=grid, block=threads)
        sums = np.add.reduceat(x, np.arange(0, n, 2 * threads))
        ct.check(out, sums, name=f"block={threads}, n={n}")
