# ---
# jupyter:
#   cudatut:
#     title: {en: "What a tensor core computes: solutions", zh: "张量核心算的是什么：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# Work on results in their fragment, and a product with a transposed matrix.

# %% given-1
import numpy as np
import cudatut as ct

a, b = (
    ct.rng(seed).standard_normal((16, 16)).astype("float16") for seed in (0, 1)
)


# %% solution-1
# The same is done to every element, so it does not matter which one x[i] is.
CLAMPED = """
#include "tensor/tensor_cores/tensor_cores.cu"  // FragmentA, FragmentB, Sums

extern "C" __global__ void clamped(const half* A, const half* B, float* D,
                                   float scale) {
  FragmentA a;
  FragmentB b;
  Sums sums;
  wmma::load_matrix_sync(a, A, 16);
  wmma::load_matrix_sync(b, B, 16);
  wmma::fill_fragment(sums, 0.0f);
  wmma::mma_sync(sums, a, b, sums);
  for (int i = 0; i < sums.num_elements; ++i)
    sums.x[i] = fmaxf(scale * sums.x[i], 0.0f);
  wmma::store_matrix_sync(D, sums, 16, wmma::mem_row_major);
}
"""


# %% check-1
import numpy as np
import cudatut as ct

clamped = ct.Kernel(CLAMPED, "clamped")
product = a.astype("float64") @ b
for scale in (1.0, 0.25, -3.0):
    d = ct.empty((16, 16), "float32")
    clamped(ct.to_device(a), ct.to_device(b), d, scale, grid=1, block=32)
    expected = np.maximum(scale * product, 0)
    ct.check(d, expected, atol=1e-4, name=f"scale {scale}")

# %% given-2
import numpy as np
import cudatut as ct


def layer(x, w):
    """X W^T by your kernel."""
    (m, k), n = x.shape, w.shape[0]
    y = ct.empty((m, n), "float32")
    kernel = ct.Kernel(LINEAR, "linear")
    grid = n // 16, m // 16
    kernel(ct.to_device(x), ct.to_device(w), y, m, n, k, grid=grid, block=32)
    return y


# %% solution-2
# Column by column, W^T begins as W does row by row: element (i, j) of W^T is
# W[j][i], and its columns are k elements apart.
LINEAR = """
#include "tensor/tensor_cores/tensor_cores.cu"  // FragmentA, Sums

using Columns =
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major>;

extern "C" __global__ void linear(const half* X, const half* W, float* Y,
                                  int m, int n, int k) {
  const int row = blockIdx.y * 16, column = blockIdx.x * 16;
  Sums sums;
  wmma::fill_fragment(sums, 0.0f);
  FragmentA a;
  Columns b;
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(a, X + (size_t)row * k + i, k);
    wmma::load_matrix_sync(b, W + (size_t)column * k + i, k);
    wmma::mma_sync(sums, a, b, sums);
  }
  wmma::store_matrix_sync(Y + (size_t)row * n + column, sums, n,
                          wmma::mem_row_major);
}
"""

# %% check-2
import numpy as np
import cudatut as ct

for m, n, k in ((16, 16, 16), (48, 32, 64), (16, 80, 160)):
    x = ct.rng(m).standard_normal((m, k)).astype("float16")
    w = ct.rng(n).standard_normal((n, k)).astype("float16")
    expected = x.astype("float64") @ w.T.astype("float64")
    ct.check(layer(x, w), expected, atol=1e-3, name=f"{m} x {n} x {k}")
