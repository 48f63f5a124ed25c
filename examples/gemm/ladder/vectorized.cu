// Rung 2: loads and stores move four words at a time, from global memory, from
// shared memory, and back. For that the tile of A is turned (transposed) on its
// way into shared memory: the words of A that a thread reads then lie side by
// side.
// @rung 20 kernel=sgemm_vectorized<128,128,8,8,8> block=256 tile=128x128
#include "edges.cuh"

// C = alpha A B + beta C, row-major: A is m x k, B is k x n, C is m x n.
// Grid: x over the columns, y over the rows; a block of BM * BN / (TM * TN)
// threads for each tile of C.
//
//   BM, BN  rows and columns of a tile of C, which one block computes
//   BK      steps of depth in shared memory at a time: a multiple of 8
//   TM, TN  rows and columns of C that a thread computes: multiples of 4
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(BM* BN / (TM * TN), 2)
    sgemm_vectorized(const float* __restrict__ A, const float* __restrict__ B,
                     float* __restrict__ C, int m, int n, int k, float alpha,
                     float beta) {
  constexpr int THREADS = BM * BN / (TM * TN);
  static_assert(BK % 8 == 0 && TM % 4 == 0 && TN % 4 == 0,
                "four words at a time");
  static_assert(BM * BK % (4 * THREADS) == 0 && BK * BN % (4 * THREADS) == 0,
                "shared evenly");
  __shared__ __align__(16) float As[BK][BM];
  __shared__ __align__(16) float Bs[BK][BN];
  const int t = threadIdx.x;
  const int left = blockIdx.x * BN, top = blockIdx.y * BM;
  // --8<-- [start:place]
  // The first column and row of this thread's results, in the tile.
  const int x = t % (BN / TN) * TN, y = t / (BN / TN) * TM;
  const bool aligned = k % 4 == 0 && n % 4 == 0;
  float sum[TM][TN] = {};
  // --8<-- [end:place]
  for (int start = 0; start < k; start += BK) {
    // --8<-- [start:load]
    // Two threads bring 8 words of a row of A: a sector of 32 bytes.
#pragma unroll
    for (int first = 0; first < BM * BK / 4; first += THREADS) {
      const int i = (first + t) / 2;
      const int row = i % BM, inner = i / BM * 8 + t % 2 * 4;
      const float4 a = load4(A, top + row, start + inner, m, k, aligned);
      As[inner][row] = a.x;
      As[inner + 1][row] = a.y;
      As[inner + 2][row] = a.z;
      As[inner + 3][row] = a.w;
    }
#pragma unroll
    for (int first = 0; first < BK * BN / 4; first += THREADS) {
      const int i = first + t;
      const int inner = i / (BN / 4), column = i % (BN / 4) * 4;
      const float4 b = load4(B, start + inner, left + column, k, n, aligned);
      *reinterpret_cast<float4*>(&Bs[inner][column]) = b;
    }
    __syncthreads();
    // --8<-- [end:load]
    // --8<-- [start:multiply]
#pragma unroll
    for (int i = 0; i < BK; ++i) {
      __align__(16) float a[TM], b[TN];
#pragma unroll
      for (int r = 0; r < TM; r += 4)
        *reinterpret_cast<float4*>(&a[r]) =
            *reinterpret_cast<const float4*>(&As[i][y + r]);
#pragma unroll
      for (int c = 0; c < TN; c += 4)
        *reinterpret_cast<float4*>(&b[c]) =
            *reinterpret_cast<const float4*>(&Bs[i][x + c]);
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
  for (int r = 0; r < TM; ++r)
#pragma unroll
    for (int c = 0; c < TN; c += 4)
      update4(C, top + y + r, left + x + c, m, n, aligned, alpha, &sum[r][c],
              beta);
  // --8<-- [end:store]
}
// --8<-- [end:kernel]
