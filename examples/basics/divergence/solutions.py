# ---
# jupyter:
#   cudatut:
#     title: {en: "Divergence: solutions", zh: "分支发散：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       width: [2048, 96]
#       height: [1024, 64]
#       n: [131072, 4096]
# ---

# %% [markdown] about
# The shape of a block decides which threads share a warp, and two nested loops
# become one.

# %% given-1
import numpy as np

import cudatut as ct

source = """
__global__ void by_row(const float* __restrict__ x,
                       float* __restrict__ out,
                       int width, int height, int steps) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= height) return;
  size_t at = (size_t)row * width + column;
  float v = x[at];
  if (row % 2 == 0) {
    for (int j = 0; j < steps; ++j) v = fmaf(0.999f, v, 0.001f);
  } else {
    for (int j = 0; j < steps; ++j) v = fmaf(-0.999f, v, 0.001f);
  }
  out[at] = v;
}
"""
by_row = ct.Kernel(source, "by_row")


# %% solution-1
def most_sides(width, height):
    """The most sides that a warp of a block of width x height takes."""
    row = np.arange(width * height) // width  # threads run along x first
    return max(len(set(warp % 2)) for warp in row.reshape(-1, 32))


# %% check-1
SHAPES = {(64, 4): 1, (32, 8): 1, (16, 16): 2, (8, 32): 2, (48, 4): 2}
for (wide, high), sides in SHAPES.items():
    found = np.array([most_sides(wide, high)])
    ct.check(found, np.array([sides]), name=f"sides of {wide} x {high}")

width = 2048
height = 1024
steps = 256
x_host = ct.rng(0).random((height, width), dtype="float32")
x, out = ct.to_device(x_host), ct.empty((height, width), "float32")
odd = np.arange(height)[:, None] % 2
factor = np.where(odd, -1, 1) * np.float64(np.float32(0.999))
power = factor**steps
expected = power * x_host + 0.001 * (1 - power) / (1 - factor)


def run(wide, high):
    grid = ct.cdiv(width, wide), ct.cdiv(height, high)
    by_row(x, out, width, height, steps, grid=grid, block=(wide, high))


for wide, high in SHAPES:
    ct.poison(out)
    run(wide, high)
    ct.check(out, expected, name=f"{wide} x {high}", rtol=1e-4)
ct.bench(
    {
        f"{wide} x {high}": lambda wide=wide, high=high: run(wide, high)
        for wide, high in list(SHAPES)[:4]
    },
    flops=2 * steps * width * height,
    name="sides by row, by shape of the block",
)

# %% given-2
import numpy as np

import cudatut as ct

source = """
__global__ void nested(const float* __restrict__ x,
                       const int* __restrict__ count,
                       float* __restrict__ out, int n, int items) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
#pragma unroll 1
  for (int item = 0; item < items; ++item) {
    size_t i = (size_t)item * n + t;
    float v = x[i];
#pragma unroll 1
    for (int left = count[i]; left > 0; --left) {
#pragma unroll 32
      for (int j = 0; j < WORK; ++j) v = fmaf(0.999f, v, 0.001f);
    }
    out[i] = v;
  }
}
"""
WORKS = (32, 256)  # FMAs in a turn
nested = {
    work: ct.Kernel(source, "nested", defines={"WORK": work}) for work in WORKS
}

n = 131_072  # threads
items = 32  # of each thread
count_host = ct.rng(1).integers(1, 65, (items, n), dtype="int32")
start_host = ct.rng(0).random((items, n), dtype="float32")

# %% solution-2
source = """
__global__ void flattened(const float* __restrict__ x,
                          const int* __restrict__ count,
                          float* __restrict__ out, int n, int items) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  int item = 0, left = count[t];
  float v = x[t];
#pragma unroll 1
  while (true) {
    if (left == 0) {  // this lane goes on to its next item
      out[(size_t)item * n + t] = v;
      if (++item == items) break;
      left = count[(size_t)item * n + t];
      v = x[(size_t)item * n + t];
    }
#pragma unroll 32
    for (int j = 0; j < WORK; ++j) v = fmaf(0.999f, v, 0.001f);
    --left;
  }
}
"""
flattened = {
    work: ct.Kernel(source, "flattened", defines={"WORK": work})
    for work in WORKS
}

# %% check-2
A = np.float64(np.float32(0.999))


def after(v, fmas):
    """`fmas` times v = 0.999 * v + 0.001 in closed form."""
    return A**fmas * v + 0.001 * (1 - A**fmas) / (1 - A)


kernels = {
    f"{name}, {work} FMAs": (kind[work], work)
    for work in WORKS
    for name, kind in (("nested", nested), ("flattened", flattened))
}
for name, (kernel, work) in kernels.items():
    for m in (1, 31, 33, 4000):
        x = ct.to_device(np.ascontiguousarray(start_host[:, :m]))
        count = ct.to_device(np.ascontiguousarray(count_host[:, :m]))
        small = ct.empty((items, m), "float32")
        kernel(x, count, small, m, items, grid=ct.cdiv(m, 256), block=256)
        wanted = after(start_host[:, :m], work * count_host[:, :m])
        ct.check(small, wanted, name=f"{name}, n = {m}", rtol=1e-4)

start, count = ct.to_device(start_host), ct.to_device(count_host)
result = ct.empty((items, n), "float32")


def run_loops(kernel):
    kernel(start, count, result, n, items, grid=ct.cdiv(n, 256), block=256)


some = slice(7, items, 8)  # every eighth item: to compare all takes long
for name, (kernel, work) in kernels.items():
    ct.poison(result)
    run_loops(kernel)
    wanted = after(start_host[some], work * count_host[some])
    ct.check(result.get()[some], wanted, name=name, rtol=1e-4)
turns = int(count_host.sum(dtype="int64"))
ct.bench(
    {
        name: lambda kernel=kernel: run_loops(kernel)
        for name, (kernel, _) in kernels.items()
    },
    flops={name: 2 * work * turns for name, (_, work) in kernels.items()},
    name="32 items per thread, 1 to 64 turns each",
)

# %% facts-2
by_warp = count_host.reshape(items, -1, 32)  # item, warp, lane
# nested: each item waits for its slowest lane. flattened: only the sum counts.
of_nested = int(by_warp.max(axis=2).sum())
of_flattened = int(by_warp.sum(axis=0).max(axis=1).sum())
ends = by_warp.cumsum(axis=0, dtype="int32").swapaxes(0, 1)
ends = np.sort(ends.reshape(n // 32, -1), axis=1)
fetches = int((1 + (np.diff(ends, axis=1) != 0).sum(axis=1)).sum())
ct.table(
    "Turns and waits of all warps",
    {
        "nested": {
            "turns": of_nested / 1e6,
            "waits for items": items * n / 32 / 1e6,
        },
        "flattened": {
            "turns": of_flattened / 1e6,
            "waits for items": fetches / 1e6,
        },
    },
    corner="kernel",
    units={"turns": "million", "waits for items": "million"},
)
