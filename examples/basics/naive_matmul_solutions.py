# ---
# jupyter:
#   cudatut:
#     title: {en: "Matrix multiplication by hand: solutions", zh: "手写矩阵乘法：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# The full SGEMM with alpha and beta, and block sizes from 2 x 2 to 32 x 32.

# %% setup
import numpy as np
from ladder import LADDER, Matmul

import cudatut as ct

# %% solution-1
gemm = ct.Kernel(
    """
__global__ void gemm(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C,
                     int m, int n, int k, float alpha, float beta) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += A[(size_t)row * k + i] * B[(size_t)i * n + column];
  const size_t at = (size_t)row * n + column;
  // With beta = 0 the old C is not read at all: it may hold anything, NaN included, and 0 * NaN is NaN.
  C[at] = beta == 0 ? alpha * sum : alpha * sum + beta * C[at];
}
""",
    "gemm",
)
m, n, k = 100, 70, 50
problem = Matmul(m, n, k)
product, bound = problem.reference
old = ct.rng(5).random((m, n), "float32")
for alpha, beta in ((1, 0), (1, 1), (-2.5, 0.5), (0, 1)):
    c = ct.to_device(np.full((m, n), np.nan, "float32") if beta == 0 else old)
    grid = ct.cdiv(n, 32), ct.cdiv(m, 32)
    gemm(problem.a, problem.b, c, m, n, k, alpha, beta, grid=grid, block=(32, 32))
    expected = alpha * product + (beta * old.astype("float64") if beta else 0)
    # Three more roundings: alpha times the sum, beta times C, and their sum.
    atol = abs(alpha) * bound + 3 * np.finfo("float32").eps * np.abs(expected).max()
    ct.check(c, expected, name=f"alpha = {alpha}, beta = {beta}", rtol=0, atol=atol)

# %% solution-2
side = ct.size(1024, 64)
problem = Matmul(side, side, side)
rung = LADDER["naive_columns"]
runs = {}
for edge in (2, 4, 8, 16, 32):
    shape = f"{edge}x{edge}"
    problem.check(rung, block=shape, tile=shape)
    runs[shape] = problem.launcher(rung, block=shape, tile=shape)
times = ct.bench(runs, flops=problem.flops, name="naive_columns, 1024, by block")

# %% claim-2
ratio = times["2x2"].median_us / times["16x16"].median_us
ct.facts(
    "2 x 2 against 16 x 16",
    {
        "predicted from the lanes in use": 32 / 4,
        "RTX 3080": 11.07 / 1.41,
        "measured here": ratio,
    },
)
ct.claim(
    id="block-2x2",
    source="CUDA slides 2.4 (RTX 3080)",
    statement={
        "en": "Blocks of 2 x 2 make the naive product 7.9 times slower than blocks of 16 x 16",
        "zh": "线程块取 2×2 时，朴素矩阵乘法比取 16×16 慢 7.9 倍",
    },
    predicted=11.07 / 1.41,
    measured=ratio,
    unit="x",
    verdict="confirmed" if 0.8 < ratio / (11.07 / 1.41) < 1.25 else "depends",
)
