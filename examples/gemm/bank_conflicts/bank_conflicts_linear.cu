// sgemm_vectorized with the tile of B laid out as three kernels of the SGEMM
// worklog have it. LAYOUT is the number of the kernel there:
//
//   6  the tile lies in rows
//   7  the eight columns of a thread are 16 words apart
//   8  the tile lies in rows that are five words longer
//
// In this file:
//
//   place         where a word of B stands
//   sgemm_linear  the kernel
#include "gemm/ladder/edges.cuh"

// Where the word of B at depth `inner` and in column `column` of the tile
// stands. In layout 7 a thread's columns are 16 words apart, and beside each of
// them stands the same column of the next thread.
// --8<-- [start:place]
template <int LAYOUT>
__device__ __forceinline__ int place(int inner, int column) {
  if (LAYOUT == 7) return (inner * 8 + column % 8) * 16 + column / 8;
  return inner * (LAYOUT == 8 ? 128 + 5 : 128) + column;
}
// --8<-- [end:place]

// C = alpha A B + beta C, row-major: A is m x k, B is k x n, C is m x n. Grid:
// x over the columns, y over the rows. A block of 256 threads computes 128 x
// 128 results in steps of depth 8, a thread 8 x 8.
template <int LAYOUT>
__global__ void __launch_bounds__(256, 2)
    sgemm_linear(const float* __restrict__ A, const float* __restrict__ B,
                 float* __restrict__ C, int m, int n, int k, float alpha,
                 float beta) {
  __shared__ __align__(16) float As[8][128];
  __shared__ __align__(16) float Bs[8 * (128 + 5)];
  const int t = threadIdx.x;
  const int left = blockIdx.x * 128, top = blockIdx.y * 128;
  const int x = t % 16 * 8, y = t / 16 * 8;
  const bool aligned = k % 4 == 0 && n % 4 == 0;
  float sum[8][8] = {};
  for (int start = 0; start < k; start += 8) {
    const int row = t / 2, depth = t % 2 * 4;
    const float4 a = load4(A, top + row, start + depth, m, k, aligned);
    As[depth][row] = a.x;
    As[depth + 1][row] = a.y;
    As[depth + 2][row] = a.z;
    As[depth + 3][row] = a.w;
    const int inner = t / 32, column = t % 32 * 4;
    const float4 b = load4(B, start + inner, left + column, k, n, aligned);
    if (LAYOUT == 6) {
      *reinterpret_cast<float4*>(&Bs[place<6>(inner, column)]) = b;
    } else {
      Bs[place<LAYOUT>(inner, column)] = b.x;
      Bs[place<LAYOUT>(inner, column + 1)] = b.y;
      Bs[place<LAYOUT>(inner, column + 2)] = b.z;
      Bs[place<LAYOUT>(inner, column + 3)] = b.w;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      __align__(16) float of_a[8], of_b[8];
#pragma unroll
      for (int r = 0; r < 8; r += 4)
        *reinterpret_cast<float4*>(&of_a[r]) =
            *reinterpret_cast<const float4*>(&As[i][y + r]);
#pragma unroll
      for (int c = 0; c < 8; ++c) of_b[c] = Bs[place<LAYOUT>(i, x + c)];
#pragma unroll
      for (int r = 0; r < 8; ++r)
#pragma unroll
        for (int c = 0; c < 8; ++c) sum[r][c] += of_a[r] * of_b[c];
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < 8; ++r)
#pragma unroll
    for (int c = 0; c < 8; c += 4)
      update4(C, top + y + r, left + x + c, m, n, aligned, alpha, &sum[r][c],
              beta);
}

// Instances that are compiled by the tests:
// @instance sgemm_linear<6>
// @instance sgemm_linear<7>
// @instance sgemm_linear<8>
