# ---
# jupyter:
#   cudatut:
#     title: {en: "Matrix multiplication by hand: solutions", zh: "手写矩阵乘法：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     sizes:
#       side: [1024, 64]
# ---

# %% [markdown]
# Blocks from 2 x 2 to 32 x 32, and the full product with alpha and beta.

# %% given-1
import numpy as np

import cudatut as ct

matmul = ct.Kernel("basics/ladder/naive_columns.cu", "matmul_naive_columns")
edges = (2, 4, 8, 16, 32)


def matrices(m, n, k):
    rng = ct.rng(0)
    A = rng.random((m, k), dtype="float32")
    return A, rng.random((k, n), dtype="float32")


# %% solution-1
def launch_shape(m, n, edge):
    """Grid and block that cover C (m rows, n columns), x along the columns."""
    return (ct.cdiv(n, edge), ct.cdiv(m, edge)), (edge, edge)


# %% check-1
def launcher(m, n, k, edge):
    A, B = matrices(m, n, k)
    d_A, d_B, C = ct.to_device(A), ct.to_device(B), ct.empty((m, n), "float32")
    grid, block = launch_shape(m, n, edge)

    def run():
        matmul(d_A, d_B, C, m, n, k, grid=grid, block=block)

    return run, C, A.astype("float64") @ B.astype("float64")


for m, n, k in ((100, 70, 50), (33, 1, 7), (1, 129, 3)):
    for edge in edges:
        run, C, exact = launcher(m, n, k, edge)
        run()
        atol = k * 2.0**-24 * exact.max()
        name = f"{m} x {n}, blocks of {edge} x {edge}"
        ct.check(C, exact, name=name, rtol=0, atol=atol)

side = 1024
runs = {f"{e} x {e}": launcher(side, side, side, e)[0] for e in edges}
ct.bench(runs, flops=2 * side**3, name="1024, by block")

# %% given-2
import numpy as np

import cudatut as ct

m, n, k = 100, 70, 50
rng = ct.rng(5)
A = rng.random((m, k), dtype="float32") - np.float32(0.5)
B = rng.random((k, n), dtype="float32") - np.float32(0.5)
old = rng.random((m, n), dtype="float32")

# %% solution-2
source = """
__global__ void gemm(const float *A, const float *B, float *C,
                     int m, int n, int k, float alpha, float beta) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i)
    sum += A[(size_t)row * k + i] * B[(size_t)i * n + column];
  const size_t at = (size_t)row * n + column;
  // With beta = 0 the old C is not read: it may be NaN, and 0 * NaN is NaN.
  C[at] = beta == 0 ? alpha * sum : alpha * sum + beta * C[at];
}
"""
gemm = ct.Kernel(source, "gemm")

# %% check-2
product = A.astype("float64") @ B.astype("float64")
bound = k * 2.0**-24 * (np.abs(A) @ np.abs(B)).max()
grid = ct.cdiv(n, 32), ct.cdiv(m, 32)
d_A, d_B = ct.to_device(A), ct.to_device(B)
for alpha, beta in ((1, 0), (1, 1), (-2.5, 0.5), (0, 1)):
    C = ct.empty((m, n), "float32")  # poison is NaN
    if beta:
        C = ct.to_device(old)
    gemm(d_A, d_B, C, m, n, k, alpha, beta, grid=grid, block=(32, 32))
    expected = alpha * product + (beta * old.astype("float64") if beta else 0)
    # Three more roundings: alpha times the sum, beta times C, and their sum.
    atol = abs(alpha) * bound + 3 * 2.0**-23 * np.abs(expected).max()
    name = f"alpha = {alpha}, beta = {beta}"
    ct.check(C, expected, name=name, rtol=0, atol=atol)
