# ---
# jupyter:
#   cudatut:
#     title: {en: "Divergence: solutions", zh: "分支发散：参考答案"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# The shape of a block decides who shares a warp, and two nested loops become one.

# %% setup
import numpy as np

import cudatut as ct

rng = ct.rng(0)
A, B = (np.float64(np.float32(c)) for c in (0.999, 0.001))


def fmas(v, steps, a=A):
    """`steps` times v = a * v + 0.001 in closed form."""
    power = a**steps
    return power * v + B * (1 - power) / (1 - a)


# %% solution-1
by_row = ct.Kernel(
    """
__device__ float side(float v, float a, int steps) {
  for (int j = 0; j < steps; ++j) v = fmaf(a, v, 0.001f);
  return v;
}

__global__ void by_row(const float* __restrict__ x, float* __restrict__ out, int width, int height,
                       int steps) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= height) return;
  const int i = row * width + column;
  if (row % 2 == 0) {
    out[i] = side(x[i], 0.999f, steps);
  } else {
    out[i] = side(x[i], -0.999f, steps);
  }
}
""",
    "by_row",
)
BLOCKS = ((64, 4), (32, 8), (16, 16), (8, 32))


def sides(block):
    """Sides per warp: thread ids run along x first, 32 of them are a warp."""
    row = np.arange(block[0] * block[1]) // block[0]
    return max(len(set(warp % 2)) for warp in row.reshape(-1, 32))


ct.facts("sides per warp", {f"{x} x {y}": sides((x, y)) for x, y in BLOCKS})
width, height, steps = ct.size(2048, 96), ct.size(1024, 64), 256
x_host = rng.random((height, width), dtype="float32")
x, out = ct.to_device(x_host), ct.empty((height, width), "float32")


def run(block, w=width, h=height):
    grid = ct.cdiv(w, block[0]), ct.cdiv(h, block[1])
    by_row(x, out, w, h, steps, grid=grid, block=block)


factor = np.where(np.arange(height) % 2 == 0, A, -A)[:, None]
expected = fmas(x_host, steps, factor)
for block in BLOCKS:
    ct.poison(out)
    run(block)
    ct.check(out, expected, name=f"{block[0]} x {block[1]}", rtol=1e-4)
ct.bench(
    {f"{x} x {y}": lambda block=(x, y): run(block) for x, y in BLOCKS},
    flops=2 * steps * width * height,
    name="sides by row, by shape of the block",
)

# %% solution-2
LOOPS = """
__device__ __forceinline__ float turn(float v) {  // WORK FMAs, each waits for the one before
#pragma unroll 32
  for (int j = 0; j < WORK; ++j) v = fmaf(0.999f, v, 0.001f);
  return v;
}

__global__ void nested(const float* __restrict__ x, const int* __restrict__ count,
                       float* __restrict__ out, int n, int items) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
#pragma unroll 1
  for (int item = 0; item < items; ++item) {
    const size_t i = (size_t)item * n + t;
    float v = x[i];
#pragma unroll 1
    for (int left = count[i]; left > 0; --left) v = turn(v);  // the warp waits for its slowest lane
    out[i] = v;
  }
}

__global__ void flattened(const float* __restrict__ x, const int* __restrict__ count,
                          float* __restrict__ out, int n, int items) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  int item = 0, left = count[t];
  float v = x[t];
#pragma unroll 1
  while (true) {
    if (left == 0) {  // this lane goes on to its next item, whatever the others do
      out[(size_t)item * n + t] = v;
      if (++item == items) break;
      left = count[(size_t)item * n + t];
      v = x[(size_t)item * n + t];
    }
    v = turn(v);
    --left;
  }
}
"""
WORKS = (32, 256)  # FMAs in a turn
n, items = ct.size(131_072, 4_096), 32
count_host = rng.integers(1, 65, (items, n), dtype="int32")
turns = count_host.reshape(items, -1, 32)  # item, warp, lane
of_nested = int(turns.max(axis=2).sum())  # each item waits for its slowest lane
of_flattened = int(turns.sum(axis=0).max(axis=1).sum())  # only the whole of a lane counts
ends = np.sort(turns.cumsum(axis=0, dtype="int32").swapaxes(0, 1).reshape(n // 32, -1), axis=1)
fetches = int((1 + (np.diff(ends, axis=1) != 0).sum(axis=1)).sum())  # turns after which some end
ct.facts(
    "turns of all warps",
    {
        "nested": of_nested,
        "flattened": of_flattened,
        "predicted ratio": of_nested / of_flattened,
        "nested: times that a warp waits for an item": items * n // 32,
        "flattened: times that a warp waits for an item": fetches,
    },
)
start_host = rng.random((items, n), dtype="float32")
start, count = ct.to_device(start_host), ct.to_device(count_host)
result = ct.empty((items, n), "float32")
kernels = {
    f"{name}, {work} FMAs": (ct.Kernel(LOOPS, name, defines={"WORK": work}), work)
    for work in WORKS
    for name in ("nested", "flattened")
}


def run_loops(kernel):
    kernel(start, count, result, n, items, grid=ct.cdiv(n, 256), block=256)


for name, (kernel, work) in kernels.items():
    ct.poison(result)
    run_loops(kernel)
    some = slice(7, items, 8)  # every eighth item, the last among them: to compare all takes long
    wanted = fmas(start_host[some], work * count_host[some])
    ct.check(result.get()[some], wanted, name=name, rtol=1e-4)
    for m in (1, 31, 33):
        few = [ct.to_device(np.ascontiguousarray(a[:, :m])) for a in (start_host, count_host)]
        small = ct.empty((items, m), "float32")
        kernel(*few, small, m, items, grid=1, block=256)
        ct.check(small, fmas(start_host[:, :m], work * count_host[:, :m]), name=f"{name}, n={m}",
                 rtol=1e-4)  # fmt: skip
ct.bench(
    {name: lambda kernel=kernel: run_loops(kernel) for name, (kernel, _) in kernels.items()},
    flops={name: int(2 * work * turns.sum(dtype="int64")) for name, (_, work) in kernels.items()},
    name="32 items per thread, 1 to 64 turns each",
)
