# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Scale and clamp", zh: "缩放与截断"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Complete the kernel: D = max(scale A B, 0), element by element, for matrices of 16 x 16. The product is
#             there; work on the results while they are in the fragment. You do not need to know which lane holds what.
#           zh: >-
#             补全 kernel：逐元素计算 D = max(scale A B, 0)，矩阵都是 16 x 16。乘法已经写好；请在片段里直接处理结果。
#             不需要知道哪个 lane 持有哪个元素。
#         fails: "are wrong"
#       2:
#         title: {en: "A linear layer", zh: "一个线性层"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Write the kernel `linear`: Y = X W^T in fp32, where X is m x k and W is n x k, both row by row in fp16, and
#             m, n, k are multiples of 16. A block is one warp and computes 16 x 16 results; grid x goes over the columns
#             of Y. A row of W is a column of W^T: which layout does the fragment of B need, and how far is it from one of
#             its columns to the next?
#           zh: >-
#             写出 kernel `linear`：用 fp32 计算 Y = X W^T，其中 X 为 m x k，W 为 n x k，都按行存放，类型为 fp16，m、n、k 是
#             16 的倍数。一个线程块就是一个线程束，计算 16 x 16 个结果；网格的 x 方向对应 Y 的列。W 的一行就是 W^T 的一列：
#             B 的片段应该用哪种布局？相邻两列相距多远？
#         fails: "are wrong"
# ---
# %% stub-1
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
  // yours: each result times scale, and 0 instead of negative ones
  wmma::store_matrix_sync(D, sums, 16, wmma::mem_row_major);
}
"""


# %% stub-2
LINEAR = """
#include "tensor/tensor_cores/tensor_cores.cu"  // FragmentA, Sums

extern "C" __global__ void linear(const half* X, const half* W, float* Y,
                                  int m, int n, int k) {
  const int row = blockIdx.y * 16, column = blockIdx.x * 16;
  Sums sums;
  wmma::fill_fragment(sums, 0.0f);
  // yours: a fragment for W^T, and the products along k
  wmma::store_matrix_sync(Y + (size_t)row * n + column, sums, n,
                          wmma::mem_row_major);
}
"""
