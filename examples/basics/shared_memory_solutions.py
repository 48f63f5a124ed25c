# ---
# jupyter:
#   cudatut:
#     title: {en: "Shared memory: solutions", zh: "共享内存：参考答案"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# A transpose that is coalesced on both sides, and a mean filter with a halo in dynamic shared memory.

# %% setup
import numpy as np

import cudatut as ct

rng = ct.rng(0)

# %% solution-1
TILED = """
#define TILE 32
extern "C" __global__ void transpose_tiled(const float* __restrict__ in, float* __restrict__ out,
                                           int rows, int columns) {
  __shared__ float tile[TILE][TILE + 1];  // one word more: a column meets 32 banks
  const int left = blockIdx.x * TILE, top = blockIdx.y * TILE;
  for (int r = threadIdx.y; r < TILE; r += blockDim.y) {
    const int row = top + r, column = left + threadIdx.x;
    if (row < rows && column < columns) tile[r][threadIdx.x] = in[(size_t)row * columns + column];
  }
  __syncthreads();  // outside of every if
  for (int r = threadIdx.y; r < TILE; r += blockDim.y) {
    const int row = top + threadIdx.x, column = left + r;  // x now walks along a row of out
    if (row < rows && column < columns) out[(size_t)column * rows + row] = tile[threadIdx.x][r];
  }
}
"""
transpose = ct.Kernel(TILED, "transpose_tiled")


def tiled(matrix, out):
    rows, columns = matrix.shape
    grid = ct.cdiv(columns, 32), ct.cdiv(rows, 32)
    transpose(matrix, out, rows, columns, grid=grid, block=(32, 8))


for shape in ((1024, 2048), (1, 1), (33, 1), (31, 1000), (100, 70)):
    host = rng.random(shape, dtype="float32")
    matrix, out = ct.to_device(host), ct.empty(shape[::-1], "float32")
    tiled(matrix, out)
    ct.check(out, host.T, name=f"transpose, {shape[0]} x {shape[1]}")

# %% bench-1
size = ct.size(4096, 256)
matrix = ct.to_device(rng.random((size, size), dtype="float32"))
out = ct.empty((size, size), "float32")
ct.bench(
    {"tiled": lambda: tiled(matrix, out), "copy": ct.vendor.copy(out, matrix)},
    bytes=2 * 4 * size**2,
    name="transpose, 4096 x 4096",
)

# %% solution-2
MEAN = """
extern "C" __global__ void mean(const float* __restrict__ x, float* __restrict__ out, int n,
                                int radius) {
  extern __shared__ float near[];  // blockDim.x + 2 * radius words
  const int first = blockIdx.x * blockDim.x - radius;
  for (int i = threadIdx.x; i < blockDim.x + 2 * radius; i += blockDim.x) {
    const int at = first + i;
    near[i] = at >= 0 && at < n ? x[at] : 0.0f;
  }
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;  // behind the barrier, which all threads have to reach
  float sum = 0;
  for (int j = 0; j <= 2 * radius; ++j) sum += near[threadIdx.x + j];
  out[i] = sum / (2 * radius + 1);
}
"""
mean = ct.Kernel(MEAN, "mean")
block = 256
n = ct.size(1 << 22, 1 << 14)
x_host = rng.random(n, dtype="float32")
x = ct.to_device(x_host)


def mean_of(host, radius):
    """Mean of the 2 * radius + 1 words around each, zeros beyond the ends."""
    padded = np.pad(host.astype("float64"), radius)
    total = np.cumsum(np.concatenate([[0.0], padded]))
    return (total[2 * radius + 1 :] - total[: host.size]) / (2 * radius + 1)


for m in sorted({n, *(m for m in ct.RAGGED if m < n)}):
    for radius in (0, 3, 300):  # 300: more words of halo than threads in the block
        out = ct.empty(m, "float32")
        mean(x[:m], out, m, radius, grid=ct.cdiv(m, block), block=block,
             shared=4 * (block + 2 * radius))  # fmt: skip
        ct.check(out, mean_of(x_host[:m], radius), name=f"n={m}, radius={radius}", rtol=1e-4)
ct.facts(
    "words loaded per result, radius 3",
    {"from global memory, no tile": 7, "with a tile": (block + 2 * 3) / block},
)
