# ---
# jupyter:
#   cudatut:
#     title: {en: "Scan: solutions", zh: "前缀和：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# Scans of a warp's lanes, of the largest so far, and of a recurrence.

# %% given-1
import numpy as np
import cudatut as ct

# %% solution-1
before_lanes = ct.Kernel(
    """
__global__ void before_lanes(const int* in, int* out, int* sums, int rows) {
  const int row = (blockIdx.x * 128 + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;  // the whole warp
  const int x = in[row * 32 + lane];
  int sum = x;
  for (int reach = 1; reach < 32; reach *= 2) {
    const int left = __shfl_up_sync(0xffffffffu, sum, reach);
    if (lane >= reach) sum += left;
  }
  out[row * 32 + lane] = sum - x;
  if (lane == 31) sums[row] = sum;
}
""",
    "before_lanes",
)

# %% check-1
import cudatut as ct

for rows in (1, 3, 5, 1_111):
    x = ct.rng(rows).integers(-1000, 1000, (rows, 32)).astype("int32")
    out, sums = ct.empty((rows, 32), "int32"), ct.empty(rows, "int32")
    ct.poison(out), ct.poison(sums)
    grid = ct.cdiv(rows, 4)
    before_lanes(ct.to_device(x), out, sums, rows, grid=grid, block=128)
    expected = np.cumsum(x, axis=1, dtype="int32") - x
    ct.check(out, expected, name=f"{rows} rows", rtol=0)
    ct.check(sums, x.sum(axis=1, dtype="int32"), name="their sums", rtol=0)

# %% given-2
import numpy as np
import cudatut as ct

# %% solution-2
largest = ct.Kernel(
    """
__device__ float up_to(float x) {  // the largest of the lanes up to this one
  const int lane = threadIdx.x % 32;
  for (int reach = 1; reach < 32; reach *= 2) {
    const float left = __shfl_up_sync(0xffffffffu, x, reach);
    if (lane >= reach) x = fmaxf(left, x);
  }
  return x;
}

__global__ void largest(const float* in, float* out) {
  __shared__ float of_warp[8];
  const int i = blockIdx.x * 256 + threadIdx.x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float x = up_to(in[i]);
  if (lane == 31) of_warp[warp] = x;
  __syncthreads();
  float before = -INFINITY;  // changes no maximum
  for (int w = 0; w < warp; ++w) before = fmaxf(before, of_warp[w]);
  out[i] = fmaxf(before, x);
}
""",
    "largest",
)

# %% check-2
import cudatut as ct

for rows in (1, 3, 1_111):
    x = ct.rng(rows).standard_normal((rows, 256), dtype="float32") - 5
    out = ct.empty((rows, 256), "float32")
    ct.poison(out)
    largest(ct.to_device(x), out, grid=rows, block=256)
    expected = np.maximum.accumulate(x, axis=1)
    ct.check(out, expected, name=f"{rows} rows", rtol=0, atol=0)

# %% given-3
import numpy as np
import cudatut as ct

# %% solution-3
recurrence = ct.Kernel(
    """
struct Pair {
  float a, b;
};

// The pair for `left` first, and `right` behind it.
__device__ Pair then(Pair left, Pair right) {
  return {right.a * left.a, right.a * left.b + right.b};
}

__global__ void recurrence(const float* a, const float* b, float* y, int rows) {
  const int row = (blockIdx.x * 128 + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;  // the whole warp
  Pair own = {a[row * 32 + lane], b[row * 32 + lane]};
  for (int reach = 1; reach < 32; reach *= 2) {
    const Pair left = {__shfl_up_sync(0xffffffffu, own.a, reach),
                       __shfl_up_sync(0xffffffffu, own.b, reach)};
    if (lane >= reach) own = then(left, own);
  }
  y[row * 32 + lane] = own.b;  // of y = 0
}
""",
    "recurrence",
)

# %% check-3
import cudatut as ct

for rows in (1, 3, 5, 1_111):
    chance = ct.rng(rows)
    a = chance.uniform(-1, 1, (rows, 32)).astype("float32")
    b = chance.standard_normal((rows, 32), dtype="float32")
    y = ct.empty((rows, 32), "float32")
    ct.poison(y)
    grid = ct.cdiv(rows, 4)
    recurrence(ct.to_device(a), ct.to_device(b), y, rows, grid=grid, block=128)
    expected = np.zeros((rows, 32))
    last = np.zeros(rows)
    for i in range(32):
        last = a[:, i].astype("float64") * last + b[:, i]
        expected[:, i] = last
    ct.check(y, expected, name=f"{rows} rows", rtol=0, atol=1e-4)
