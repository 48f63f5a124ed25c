// Solution of an exercise: the same as block_tile_2d.cu, but the columns of a
// thread are BN / TN apart, so that lanes side by side read and write words
// side by side.
// @rung kernel=sgemm_strided_columns<128,128,8,8,8> block=256 tile=128x128
#include "gemm/ladder/edges.cuh"

// C = alpha A B + beta C, row-major: A is m x k, B is k x n, C is m x n.
// Grid: x over the columns, y over the rows; a block of BM * BN / (TM * TN)
// threads for each tile of C.
//
//   BM, BN  rows and columns of a tile of C, which one block computes
//   BK      steps of depth that are in shared memory at a time
//   TM, TN  rows and columns of C that a thread computes; they divide BM and BN
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(BM* BN / (TM * TN))
    sgemm_strided_columns(const float* __restrict__ A,
                          const float* __restrict__ B, float* __restrict__ C,
                          int m, int n, int k, float alpha, float beta) {
  constexpr int THREADS = BM * BN / (TM * TN);
  static_assert(BM * BK % THREADS == 0 && BK * BN % THREADS == 0,
                "threads share a tile evenly");
  __shared__ float As[BM][BK];
  __shared__ float Bs[BK][BN];
  const int t = threadIdx.x;
  const int left = blockIdx.x * BN, top = blockIdx.y * BM;
  // --8<-- [start:place]
  // The first column and row of this thread's results, in the tile; its next
  // column is NEXT further.
  constexpr int NEXT = BN / TN;
  const int x = t % NEXT, y = t / NEXT * TM;
  float sum[TM][TN] = {};
  // --8<-- [end:place]
  for (int start = 0; start < k; start += BK) {
    // --8<-- [start:load]
#pragma unroll
    for (int first = 0; first < BM * BK; first += THREADS) {
      const int i = first + t;
      const int row = top + i / BK, inner = start + i % BK;
      As[i / BK][i % BK] =
          row < m && inner < k ? A[(size_t)row * k + inner] : 0.0f;
    }
#pragma unroll
    for (int first = 0; first < BK * BN; first += THREADS) {
      const int i = first + t;
      const int inner = start + i / BN, column = left + i % BN;
      Bs[i / BN][i % BN] =
          inner < k && column < n ? B[(size_t)inner * n + column] : 0.0f;
    }
    __syncthreads();
    // --8<-- [end:load]
    // --8<-- [start:multiply]
    // Not all BK steps at once: unrolled further, the loop takes over 128
    // registers, and an SM holds only one block.
#pragma unroll 2
    for (int i = 0; i < BK; ++i) {
      float a[TM], b[TN];
#pragma unroll
      for (int r = 0; r < TM; ++r) a[r] = As[y + r][i];
#pragma unroll
      for (int c = 0; c < TN; ++c) b[c] = Bs[i][x + NEXT * c];
#pragma unroll
      for (int r = 0; r < TM; ++r)
#pragma unroll
        for (int c = 0; c < TN; ++c) sum[r][c] += a[r] * b[c];
    }
    __syncthreads();
    // --8<-- [end:multiply]
  }
  // --8<-- [start:store]
#pragma unroll
  for (int r = 0; r < TM; ++r) {
#pragma unroll
    for (int c = 0; c < TN; ++c) {
      const int row = top + y + r, column = left + x + NEXT * c;
      if (row < m && column < n) {
        float* to = C + (size_t)row * n + column;
        *to = blend(alpha, sum[r][c], beta, to);
      }
    }
  }
  // --8<-- [end:store]
}
// --8<-- [end:kernel]
