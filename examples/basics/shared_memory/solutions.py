# ---
# jupyter:
#   cudatut:
#     title: {en: "Shared memory: solutions", zh: "共享内存：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       side: [4096, 256]
#       n: [4194304, 16384]
# ---

# %% [markdown] about
# Words that change places inside a block, a transpose that is coalesced on both
# sides, and a mean over neighbors in dynamic shared memory.

# %% given-1
import numpy as np

import cudatut as ct

# %% solution-1
source = """
__global__ void reverse(const float* __restrict__ x,
                        float* __restrict__ out, int n) {
  __shared__ float words[256];
  int t = threadIdx.x, start = blockIdx.x * blockDim.x;
  int count = min((int)blockDim.x, n - start);  // words of this block
  if (t < count) words[t] = x[start + t];
  __syncthreads();  // outside of every if: all threads must reach it
  if (t < count) out[start + t] = words[count - 1 - t];
}
"""
reverse = ct.Kernel(source, "reverse")

# %% check-1
for length in (*ct.RAGGED, 256, 1000):
    host = ct.rng(length).random(length, dtype="float32")
    out = ct.empty(length, "float32")
    grid = ct.cdiv(length, 256)
    reverse(ct.to_device(host), out, length, grid=grid, block=256)
    blocks = [host[i : i + 256][::-1] for i in range(0, length, 256)]
    ct.check(out, np.concatenate(blocks), name=f"reverse, n = {length}")

# %% given-2
import cudatut as ct


def transposed(matrix, out):
    """Launch: one block of 32 x 8 threads for each tile of 32 x 32."""
    rows, columns = matrix.shape
    grid = ct.cdiv(columns, 32), ct.cdiv(rows, 32)
    transpose(matrix, out, rows, columns, grid=grid, block=(32, 8))


# %% solution-2
source = """
#define TILE 32

__global__ void transpose(const float* __restrict__ in,
                          float* __restrict__ out,
                          int rows, int columns) {
  __shared__ float tile[TILE][TILE + 1];
  int x = threadIdx.x, left = blockIdx.x * TILE, top = blockIdx.y * TILE;
  for (int r = threadIdx.y; r < TILE; r += blockDim.y) {
    int row = top + r, column = left + x;
    if (row < rows && column < columns)
      tile[r][x] = in[(size_t)row * columns + column];
  }
  __syncthreads();  // outside of every if
  for (int r = threadIdx.y; r < TILE; r += blockDim.y) {
    int row = top + x, column = left + r;  // x walks along a row of out
    if (row < rows && column < columns)
      out[(size_t)column * rows + row] = tile[x][r];
  }
}
"""
transpose = ct.Kernel(source, "transpose")

# %% check-2
side = 4096
for shape in ((1, 1), (33, 1), (31, 1000), (100, 70), (1024, 2048)):
    host = ct.rng(0).random(shape, dtype="float32")
    matrix, out = ct.to_device(host), ct.empty(shape[::-1], "float32")
    transposed(matrix, out)
    ct.check(out, host.T, name=f"transpose, {shape[0]} x {shape[1]}")

large = ct.to_device(ct.rng(0).random((side, side), dtype="float32"))
turned = ct.empty((side, side), "float32")
ct.bench(
    {
        "transpose": lambda: transposed(large, turned),
        "copy": ct.vendor.copy(turned, large),
    },
    bytes=2 * 4 * side**2,
    name="transpose, 4096 x 4096",
)

# %% given-3
import numpy as np

import cudatut as ct


def expected_mean(host, radius):
    """Mean of the 2 * radius + 1 words around each, zeros beyond the ends."""
    padded = np.pad(host.astype("float64"), radius)
    total = np.cumsum(np.concatenate([[0.0], padded]))
    width = 2 * radius + 1
    return (total[width:] - total[: host.size]) / width


# %% solution-3
source = """
__global__ void mean(const float* __restrict__ x, float* __restrict__ out,
                     int n, int radius) {
  extern __shared__ float near[];  // blockDim.x + 2 * radius words
  int words = blockDim.x + 2 * radius;
  long long first = (long long)blockIdx.x * blockDim.x - radius;
  for (int w = threadIdx.x; w < words; w += blockDim.x) {
    long long at = first + w;
    near[w] = at >= 0 && at < n ? x[at] : 0.0f;
  }
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;  // behind the barrier, which all threads must reach
  float sum = 0;
  for (int j = 0; j <= 2 * radius; ++j) sum += near[threadIdx.x + j];
  out[i] = sum / (2 * radius + 1);
}
"""
mean = ct.Kernel(source, "mean")

# %% check-3
n = 4_194_304
host = ct.rng(0).random(n, dtype="float32")
x = ct.to_device(host)
for length in sorted({n, *(m for m in ct.RAGGED if m < n)}):
    for radius in (0, 3, 300):  # 300: more words than the block has threads
        out = ct.empty(length, "float32")
        launch = {"grid": ct.cdiv(length, 256), "block": 256}
        shared = 4 * (256 + 2 * radius)  # bytes
        mean(x[:length], out, length, radius, shared=shared, **launch)
        name = f"n = {length}, radius {radius}"
        want = expected_mean(host[:length], radius)
        ct.check(out, want, name=name, rtol=1e-4)

# %% facts-3
ct.facts(
    "Words from global memory per result, radius 3",
    {"without a tile": 2 * 3 + 1, "with a tile": (256 + 2 * 3) / 256},
)
