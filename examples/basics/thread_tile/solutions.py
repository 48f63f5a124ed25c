# ---
# jupyter:
#   cudatut:
#     title: {en: "One thread, many results: solutions", zh: "一个线程算多个结果：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       large: [2048, 70]
# ---

# %% [markdown] about
# Why eight neighbors of a row are the wrong eight, and two columns per thread.

# %% given-1
import numpy as np


# %% solution-1
def first_words(n):
    """Indexes in C, one for each lane: (below each other, side by side)."""
    lane = np.arange(32)
    below = lane
    beside = lane // 8 * n + lane % 8 * 8
    return below, beside


# %% check-1
import cudatut as ct

for n in (2048, 1000):
    below, beside = first_words(n)
    row, column = np.divmod(np.asarray(beside), n)
    ct.check(np.asarray(below), np.arange(32), name=f"below, n = {n}")
    ct.check(row, np.arange(32) // 8, name=f"side by side, rows, n = {n}")
    ct.check(
        column, np.arange(32) % 8 * 8, name=f"side by side, columns, n = {n}"
    )
    layouts = {"below each other": below, "side by side": beside}
    ct.facts(
        f"Sectors of a store, n = {n}",
        {name: len(np.unique(4 * at // 32)) for name, at in layouts.items()},
    )

# %% given-2
import cudatut as ct


def product(kernel, a, b, c, threads):
    """Launch: one block for each tile of 64 x 64 of C."""
    (m, k), n = a.shape, b.shape[1]
    grid = ct.cdiv(n, 64), ct.cdiv(m, 64)
    kernel(a, b, c, m, n, k, grid=grid, block=threads)


# %% solution-2
source = """
#define BM 64
#define BN 64
#define BK 8
#define TM 8
#define THREADS 256

__global__ void two_columns(const float* __restrict__ A,
                            const float* __restrict__ B,
                            float* __restrict__ C, int m, int n, int k) {
  __shared__ float a[BM][BK], b[BK][BN];
  int t = threadIdx.x, x = t % 32, y = t / 32 * TM;  // columns x and x + 32
  int left = blockIdx.x * BN, top = blockIdx.y * BM;
  float sum[TM][2] = {};
  for (int start = 0; start < k; start += BK) {
#pragma unroll
    for (int i = t; i < BM * BK; i += THREADS) {
      int row = top + i / BK, of_a = start + i % BK;
      int column = left + i % BN, of_b = start + i / BN;
      a[i / BK][i % BK] =
          row < m && of_a < k ? A[(size_t)row * k + of_a] : 0.0f;
      b[i / BN][i % BN] =
          of_b < k && column < n ? B[(size_t)of_b * n + column] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < BK; ++i) {
      float b0 = b[i][x], b1 = b[i][x + 32];
#pragma unroll
      for (int r = 0; r < TM; ++r) {
        sum[r][0] += a[y + r][i] * b0;
        sum[r][1] += a[y + r][i] * b1;
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < TM; ++r) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      int row = top + y + r, column = left + x + 32 * j;
      if (row < m && column < n) C[(size_t)row * n + column] = sum[r][j];
    }
  }
}
"""
two_columns = ct.Kernel(source, "two_columns")

# %% check-2
SHAPES = [
    (1, 1, 1),
    (31, 33, 7),
    (33, 31, 129),
    (100, 70, 50),
    (65, 129, 9),
]
for m, n, k in SHAPES:
    rng = ct.rng(m)  # whole numbers: every sum is exact in fp32
    A = rng.integers(-8, 9, (m, k)).astype("float32")
    B = rng.integers(-8, 9, (k, n)).astype("float32")
    c = ct.empty((m, n), "float32")
    product(two_columns, ct.to_device(A), ct.to_device(B), c, 256)
    name = f"two columns, {m} x {n} x {k}"
    ct.check(c, A.astype("float64") @ B, name=name, rtol=0, atol=0)

large = 2048
A, B = (ct.rng(i).random((large, large), dtype="float32") for i in (0, 1))
a, b, c = ct.to_device(A), ct.to_device(B), ct.empty((large, large), "float32")
eight = ct.Kernel("basics/ladder/thread_tile.cu", "matmul_thread_tile")
ct.bench(
    {
        "thread_tile": lambda: product(eight, a, b, c, 512),
        "two columns": lambda: product(two_columns, a, b, c, 256),
    },
    flops=2 * large**3,
    rounds=11,
    name="2048 x 2048 x 2048",
)

# %% facts-2
k = 1024
ct.facts(
    "Words per result from shared memory, K = 1024",
    {"thread_tile": k * (8 + 1) / 8, "two columns": k * (8 + 2) / 16},
)

# %% check-rung
from cudatut.book.basics.ladder.ladder import Matmul

rung = ct.read_rung("basics/thread_tile/two_columns.cu")
for m, n, k in SHAPES:
    Matmul(m, n, k).check(rung)
Matmul(96, 200, 40, integers=True).check(rung)
