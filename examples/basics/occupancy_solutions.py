# ---
# jupyter:
#   cudatut:
#     title: {en: "Occupancy: solutions", zh: "占用率：参考答案"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# What blocks of one warp cost, and the block size that holds the most warps.

# %% setup
import numpy as np

import cudatut as ct

gpu = ct.device()
most_warps = gpu.max_threads_per_sm // 32
scale = ct.Kernel(
    """
__global__ void scale(const float* __restrict__ x, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i];
}
""",
    "scale",
)

# %% solution-1
SIZES = (32, 64, 128, 256, 1024)
predicted = {}
for threads in SIZES:
    warps = threads // 32
    blocks = min(gpu.max_blocks_per_sm, most_warps // warps)  # few registers, no shared memory
    predicted[threads] = blocks * warps / most_warps
    driver = scale.resources(threads).occupancy
    ct.check(np.array(driver), np.array(predicted[threads]), name=f"{threads} threads")
ct.facts("occupancy", {f"{threads} threads": (100 * p, "%") for threads, p in predicted.items()})

n = ct.size(16_777_259, 40_009)
x_host = ct.rng(0).random(n, dtype="float32")
x, out = ct.to_device(x_host), ct.empty(n, "float32")


def run(threads, m=n):
    scale(x, out, m, grid=ct.cdiv(m, threads), block=threads)


for threads in SIZES:
    for m in (300_007, 1, 31, 33):
        m = min(m, n)
        ct.poison(out)
        run(threads, m)
        ct.check(out[:m], 2 * x_host[:m], name=f"{threads} threads, n={m}")
ct.bench(
    {f"{threads} threads": lambda threads=threads: run(threads) for threads in SIZES},
    bytes=8 * n,
    name="one element per thread, by threads per block",
)

# %% solution-2
SHARED_PER_THREAD = 28  # bytes
staged = ct.Kernel(
    """
__global__ void staged(const float* __restrict__ x, float* __restrict__ out, int n) {
  extern __shared__ float row[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 0; j < 7; ++j) row[j * blockDim.x + threadIdx.x] = i < n ? x[i] + j : 0.0f;
  __syncthreads();
  const int other = blockDim.x - 1 - threadIdx.x;
  float sum = 0.0f;
  for (int j = 0; j < 7; ++j) sum += row[j * blockDim.x + other];
  if (i < n) out[i] = sum;
}
""",
    "staged",
)


def best_block(registers, shared_per_thread):
    """(occupancy, threads): the most resident warps, and the smallest block that reaches them."""
    reserved = gpu.shared_per_sm - gpu.shared_per_block_optin
    unit = 256 if gpu.compute_capability < (8, 0) else 128
    best = (0.0, 0)
    for threads in range(32, 1025, 32):
        warps = threads // 32
        per_warp = ct.cdiv(32 * registers, 256) * 256
        per_block = ct.cdiv(threads * shared_per_thread + reserved, unit) * unit
        blocks = min(
            most_warps // warps,
            gpu.max_blocks_per_sm,
            4 * (gpu.registers_per_sm // 4 // per_warp) // warps,
            gpu.shared_per_sm // per_block,
        )
        occupancy = blocks * warps / most_warps
        if occupancy > best[0]:
            best = (occupancy, threads)
    return best


needs = staged.resources(32, 32 * SHARED_PER_THREAD)
occupancy, threads = best_block(needs.registers, SHARED_PER_THREAD)
by_driver = {t: staged.resources(t, t * SHARED_PER_THREAD).occupancy for t in range(32, 1025, 32)}
ct.check(np.array(max(by_driver.values())), np.array(occupancy), name="best occupancy")
ct.facts(
    "blocks of `staged`",
    {
        "best occupancy": (100 * occupancy, "%"),
        "threads": threads,
        **{f"{t} threads": (100 * by_driver[t], "%") for t in (32, 64, 128, 256, 512, 1024)},
    },
)
m = 1_000_003
out = ct.empty(m, "float32")
source = ct.to_device(np.arange(m, dtype="float32") % 1024)
staged(source, out, m, grid=ct.cdiv(m, threads), block=threads, shared=threads * SHARED_PER_THREAD)
i = np.arange(m)
opposite = i - i % threads + threads - 1 - i % threads
expected = np.where(opposite < m, 7 * (opposite % 1024) + 21, 0)
ct.check(out, expected.astype("float64"), name="staged")
