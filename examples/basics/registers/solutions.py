# ---
# jupyter:
#   cudatut:
#     title: {en: "Registers: solutions", zh: "寄存器：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [200000, 4096]
# ---

# %% [markdown] about
# A window of values whose index stays constant, and counters of each thread in
# shared memory.

# %% given-1
import numpy as np

import cudatut as ct

source = """
#define WINDOW 16

__global__ void smooth_indexed(const float* __restrict__ x,
                               float* __restrict__ out, int n, int each) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  float last[WINDOW] = {}, sum = 0;
#pragma unroll 1
  for (int j = 0; j < each; ++j) {
    float v = x[(size_t)j * n + t];
    sum += v - last[j % WINDOW];  // the index follows the loop
    last[j % WINDOW] = v;
    out[(size_t)j * n + t] = sum / WINDOW;
  }
}
"""
smooth_indexed = ct.Kernel(source, "smooth_indexed")

n = 200_000  # threads
each = 60  # values of each thread: no multiple of the window
x_host = ct.rng(0).random((each, n), dtype="float32")

# %% solution-1
source = """
#define WINDOW 16

__global__ void smooth_unrolled(const float* __restrict__ x,
                                float* __restrict__ out, int n, int each) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  float last[WINDOW] = {}, sum = 0;
#pragma unroll 1
  for (int first = 0; first < each; first += WINDOW) {
#pragma unroll
    for (int k = 0; k < WINDOW; ++k) {  // in each copy k is a constant
      int j = first + k;
      if (j < each) {
        float v = x[(size_t)j * n + t];
        sum += v - last[k];
        last[k] = v;
        out[(size_t)j * n + t] = sum / WINDOW;
      }
    }
  }
}
"""
smooth_unrolled = ct.Kernel(source, "smooth_unrolled")

# %% check-1
totals = np.cumsum(x_host, axis=0, dtype="float64")
before = np.zeros_like(totals)
before[16:] = totals[:-16]
expected = (totals - before) / 16
for count, m in ((60, 1), (60, 31), (5, 33), (16, 1000), (60, n)):
    x = ct.to_device(np.ascontiguousarray(x_host[:count, :m]))
    for kernel in (smooth_indexed, smooth_unrolled):
        out = ct.empty((count, m), "float32")
        kernel(x, out, m, count, grid=ct.cdiv(m, 256), block=256)
        name = f"{kernel.name}, {count} values, n = {m}"
        ct.check(out, expected[:count, :m], name=name, rtol=1e-4)
local = np.array([smooth_unrolled.resources(256).spill_bytes])
ct.check(local, np.array([0]), name="local memory")

x, out = ct.to_device(x_host), ct.empty((each, n), "float32")
launch = {"grid": ct.cdiv(n, 256), "block": 256}
times = ct.bench(
    {
        "smooth_indexed": lambda: smooth_indexed(x, out, n, each, **launch),
        "smooth_unrolled": lambda: smooth_unrolled(x, out, n, each, **launch),
    },
    bytes=2 * 4 * each * n,
    name="moving average of 16",
)

# %% table-1
rows = {}
for kernel in (smooth_indexed, smooth_unrolled):
    needs = kernel.resources(256)
    rows[kernel.name] = {
        "registers": needs.registers,
        "local memory": needs.spill_bytes,
        "occupancy": 100 * needs.occupancy,
        "time": times[kernel.name].median_us,
    }
units = {"local memory": "B", "occupancy": "%", "time": "us"}
ct.table("Moving average of 16", rows, corner="kernel", units=units)

# %% facts-1
# A window of eight values, everything else as before.
eight = smooth_indexed.source.replace("#define WINDOW 16", "#define WINDOW 8")
eight = ct.Kernel(eight, "smooth_indexed")
m = 33
x = ct.to_device(np.ascontiguousarray(x_host[:, :m]))
out = ct.empty((each, m), "float32")
eight(x, out, m, each, grid=1, block=256)
before[:8], before[8:] = 0, totals[:-8]
ct.check(out, ((totals - before) / 8)[:, :m], name="window of 8", rtol=1e-4)
ct.facts(
    "smooth_indexed with a window of 8",
    {"local memory": (eight.resources(256).spill_bytes, "B")},
)

# %% given-2
import numpy as np

import cudatut as ct

count_indexed = ct.Kernel("basics/registers/registers.cu", "count_indexed")
count_unrolled = ct.Kernel("basics/registers/registers.cu", "count_unrolled")

n = 200_000  # threads
each = 64  # values of each
values = ct.rng(1).integers(0, 16, (each, n), dtype="int32")

# %% solution-2
source = """
#define BINS 16
#define BLOCK 256

__global__ void count_shared(const int* __restrict__ x,
                             int* __restrict__ out, int n, int each) {
  __shared__ int c[BINS][BLOCK];  // a column for each thread
  int t = blockIdx.x * BLOCK + threadIdx.x;
#pragma unroll
  for (int k = 0; k < BINS; ++k) c[k][threadIdx.x] = 0;
  if (t >= n) return;  // no barrier follows: columns are not shared
#pragma unroll 1
  for (int j = 0; j < each; ++j) c[x[(size_t)j * n + t]][threadIdx.x]++;
#pragma unroll
  for (int k = 0; k < BINS; ++k) out[(size_t)k * n + t] = c[k][threadIdx.x];
}
"""
count_shared = ct.Kernel(source, "count_shared")

# %% check-2
wanted = np.stack([(values == k).sum(axis=0) for k in range(16)])
wanted = wanted.astype("int32")
for m in (1, 31, 33, 1000, n):
    x = ct.to_device(np.ascontiguousarray(values[:, :m]))
    counts = ct.empty((16, m), "int32")
    count_shared(x, counts, m, each, grid=ct.cdiv(m, 256), block=256)
    ct.check(counts, wanted[:, :m], name=f"count_shared, n = {m}")

x, counts = ct.to_device(values), ct.empty((16, n), "int32")
launch = {"grid": ct.cdiv(n, 256), "block": 256}
times = ct.bench(
    {
        "count_indexed": lambda: count_indexed(x, counts, n, each, **launch),
        "count_unrolled": lambda: count_unrolled(x, counts, n, each, **launch),
        "count_shared": lambda: count_shared(x, counts, n, each, **launch),
    },
    bytes=4 * (each + 16) * n,
    name="16 counters per thread, random values",
)

# %% table-2
rows = {}
for kernel in (count_indexed, count_unrolled, count_shared):
    needs = kernel.resources(256)
    rows[kernel.name] = {
        "shared memory": needs.shared_bytes,
        "local memory": needs.spill_bytes,
        "occupancy": 100 * needs.occupancy,
        "time": times[kernel.name].median_us,
    }
units = {
    "shared memory": "B",
    "local memory": "B",
    "occupancy": "%",
    "time": "us",
}
ct.table("Three ways to count", rows, corner="kernel", units=units)
