# ---
# jupyter:
#   cudatut:
#     title: {en: "Registers: solutions", zh: "寄存器：参考答案"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# A rotation that keeps its index constant, and counters of one's own in shared memory.

# %% setup
import numpy as np

import cudatut as ct

rng = ct.rng(0)
n, block = ct.size(200_000, 4_096), 256
LENGTHS = (n, 1, 31, 33)

# %% solution-1
WINDOW = 16
SMOOTH = """
#define WINDOW 16
__global__ void smooth_indexed(const float* __restrict__ x, float* __restrict__ out, int n, int each) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  float last[WINDOW] = {}, sum = 0.0f;
#pragma unroll 1
  for (int j = 0; j < each; ++j) {
    const float v = x[(size_t)j * n + t];
    sum += v - last[j % WINDOW];  // the index follows the loop: local memory
    last[j % WINDOW] = v;
    out[(size_t)j * n + t] = sum / WINDOW;
  }
}

__global__ void smooth_unrolled(const float* __restrict__ x, float* __restrict__ out, int n, int each) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  float last[WINDOW] = {}, sum = 0.0f;
#pragma unroll 1
  for (int first = 0; first < each; first += WINDOW) {
#pragma unroll
    for (int k = 0; k < WINDOW; ++k) {  // j % WINDOW is k, a constant in each copy of the body
      const int j = first + k;
      if (j < each) {
        const float v = x[(size_t)j * n + t];
        sum += v - last[k];
        last[k] = v;
        out[(size_t)j * n + t] = sum / WINDOW;
      }
    }
  }
}
"""
indexed, unrolled = ct.Kernel(SMOOTH, "smooth_indexed"), ct.Kernel(SMOOTH, "smooth_unrolled")
ct.show(indexed.resources(block))
ct.show(unrolled.resources(block))
each = 60  # no multiple of the window
x_host = rng.random((each, n), dtype="float32")
x, out = ct.to_device(x_host), ct.empty((each, n), "float32")
totals = np.cumsum(x_host, axis=0, dtype="float64")
before = np.zeros_like(totals)
before[WINDOW:] = totals[:-WINDOW]
expected = (totals - before) / WINDOW
for kernel in (indexed, unrolled):
    for m in LENGTHS:
        data = x if m == n else ct.to_device(np.ascontiguousarray(x_host[:, :m]))
        result = ct.empty((each, m), "float32")
        kernel(data, result, m, each, grid=ct.cdiv(m, block), block=block)
        ct.check(result, expected[:, :m], name=f"{kernel.name}, n={m}", rtol=1e-4)


def run(kernel):
    return lambda: kernel(x, out, n, each, grid=ct.cdiv(n, block), block=block)


ct.bench(
    {"smooth_indexed": run(indexed), "smooth_unrolled": run(unrolled)},
    bytes=2 * 4 * each * n,
    name="moving average of 16",
)

# %% solution-2
BINS, each = 16, 64
count_shared = ct.Kernel(
    """
#define BINS 16
#define BLOCK 256
__global__ void count_shared(const int* __restrict__ x, int* __restrict__ out, int n, int each) {
  // One column per thread: lane l uses bank l whatever its value, so no two lanes of a warp meet.
  __shared__ int c[BINS][BLOCK];
  const int t = blockIdx.x * BLOCK + threadIdx.x;
#pragma unroll
  for (int k = 0; k < BINS; ++k) c[k][threadIdx.x] = 0;
  if (t >= n) return;  // no barrier follows: a thread touches only its own column
#pragma unroll 1
  for (int j = 0; j < each; ++j) c[x[(size_t)j * n + t]][threadIdx.x]++;
#pragma unroll
  for (int k = 0; k < BINS; ++k) out[(size_t)k * n + t] = c[k][threadIdx.x];
}
""",
    "count_shared",
)
count_indexed = ct.Kernel("basics/registers.cu", "count_indexed")
count_unrolled = ct.Kernel("basics/registers.cu", "count_unrolled")
ct.show(count_shared.resources(block))
values = rng.integers(0, BINS, (each, n), dtype="int32")
v, counts = ct.to_device(values), ct.empty((BINS, n), "int32")
for m in LENGTHS:
    data = v if m == n else ct.to_device(np.ascontiguousarray(values[:, :m]))
    result = ct.empty((BINS, m), "int32")
    count_shared(data, result, m, each, grid=ct.cdiv(m, block), block=block)
    wanted = np.stack([(values[:, :m] == k).sum(axis=0) for k in range(BINS)]).astype("int32")
    ct.check(result, wanted, name=f"count_shared, n={m}")


def count(kernel):
    return lambda: kernel(v, counts, n, each, grid=ct.cdiv(n, block), block=block)


ct.bench(
    {k.name: count(k) for k in (count_indexed, count_unrolled, count_shared)},
    bytes=4 * (each + BINS) * n,
    name="16 counters per thread, random values",
)
