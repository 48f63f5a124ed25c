# ---
# jupyter:
#   cudatut:
#     title: {en: "Occupancy: solutions", zh: "占用率：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [16777259, 40009]
#       m: [10000019, 40009]
# ---

# %% [markdown] about
# What blocks of one warp cost, and the smallest block that fills an SM although
# each block keeps a table of its own.

# %% given-1
import numpy as np

import cudatut as ct

scale = ct.Kernel(
    """
__global__ void scale(const float* __restrict__ x,
                      float* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i];
}
""",
    "scale",
)
gpu = ct.device()
most_blocks = gpu.max_blocks_per_sm
most_warps = gpu.max_threads_per_sm // 32


# %% solution-1
def occupancy(threads):
    """Resident warps of an SM, divided by the most that it holds."""
    warps = threads // 32
    blocks = min(most_blocks, most_warps // warps)
    return blocks * warps / most_warps


# %% check-1
BLOCKS = (32, 64, 128, 256, 1024)
shares = {}
for threads in BLOCKS:
    shares[threads] = occupancy(threads)
    driver = np.array(scale.resources(threads).occupancy)
    ct.check(np.array(shares[threads]), driver, name=f"{threads} threads")

n = 16_777_259
x_host = ct.rng(0).random(n, dtype="float32")
x, out = ct.to_device(x_host), ct.empty(n, "float32")


def run(threads, length=n):
    scale(x, out, length, grid=ct.cdiv(length, threads), block=threads)


for threads in BLOCKS:
    for length in (1, 31, 33, n):
        ct.poison(out)
        run(threads, length)
        name = f"block {threads}, n = {length}"
        ct.check(out[:length], 2 * x_host[:length], name=name)
times = ct.bench(
    {f"{threads} threads": lambda a=threads: run(a) for threads in BLOCKS},
    bytes=8 * n,
    name="one element per thread, by threads per block",
)

# %% table-1
ct.table(
    "Occupancy and time",
    {
        threads: {
            "occupancy": 100 * shares[threads],
            "blocks": ct.cdiv(n, threads) / 1e3,
            "time": times[f"{threads} threads"].median_us,
            "blocks per nanosecond": ct.cdiv(n, threads)
            / times[f"{threads} threads"].median_us
            / 1e3,
        }
        for threads in BLOCKS
    },
    corner="threads per block",
    units={"occupancy": "%", "blocks": "thousand", "time": "us"},
)

# %% given-2
import numpy as np

import cudatut as ct

source = """
#define TABLE 6144  // floats: 24 KiB

__global__ void look_up(const float* __restrict__ table,
                        const int* __restrict__ x,
                        float* __restrict__ out, int n) {
  __shared__ float mine[TABLE];
  for (int k = threadIdx.x; k < TABLE; k += blockDim.x) mine[k] = table[k];
  __syncthreads();
  size_t t = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = t; i < n; i += stride) out[i] = mine[x[i]];
}
"""
look_up = ct.Kernel(source, "look_up")

gpu = ct.device()
most_warps = gpu.max_threads_per_sm // 32
most_blocks = gpu.max_blocks_per_sm
reserved = gpu.shared_per_sm - gpu.shared_per_block_optin


# %% solution-2
def best_block(registers, shared):
    """(occupancy, threads): the best, and the smallest block for it."""
    best = (0.0, 32)
    for threads in range(32, 1025, 32):
        warps = threads // 32
        per_warp = 256 * ct.cdiv(32 * registers, 256)
        per_block = 128 * ct.cdiv(shared + reserved, 128)
        blocks = min(
            most_warps // warps,
            most_blocks,
            4 * (gpu.registers_per_sm // 4 // per_warp) // warps,
            gpu.shared_per_sm // per_block,
        )
        if blocks * warps / most_warps > best[0]:
            best = (blocks * warps / most_warps, threads)
    return best


# %% check-2
needs = look_up.resources(32)
found, threads = best_block(needs.registers, needs.shared_bytes)
driver = {a: look_up.resources(a).occupancy for a in range(32, 1025, 32)}
most = max(driver.values())
fewest = min(a for a, share in driver.items() if share == most)
ct.check(np.array(found), np.array(most), name="best occupancy")
ct.check(np.array([threads]), np.array([fewest]), name="fewest threads")

m = 10_000_019
table_host = ct.rng(0).random(6144, dtype="float32")
picks_host = ct.rng(1).integers(0, 6144, m, dtype="int32")
table, picks = ct.to_device(table_host), ct.to_device(picks_host)


def pick(a, out, length=m):
    """Look up with blocks of `a` threads, as many as the GPU holds."""
    blocks = look_up.resources(a).blocks_per_sm * gpu.sm_count
    look_up(table, picks, out, length, grid=blocks, block=a)


for length in (1, 31, 33, 1000, m):
    out = ct.empty(length, "float32")
    pick(threads, out, length)
    wanted = table_host[picks_host[:length]]
    ct.check(out, wanted, name=f"look_up, n = {length}")
out = ct.empty(m, "float32")
ct.bench(
    {
        f"{a} threads": lambda a=a: pick(a, out)
        for a in dict.fromkeys((32, 128, threads, 1024))
    },
    bytes=8 * m,
    name="look up, by threads per block",
)

# %% table-2
ct.table(
    "Blocks of `look_up`",
    {
        a: {
            "blocks per SM": look_up.resources(a).blocks_per_sm,
            "occupancy": 100 * driver[a],
        }
        for a in (32, 128, 256, 384, 512, 1024)
    },
    corner="threads per block",
    units={"occupancy": "%"},
)
