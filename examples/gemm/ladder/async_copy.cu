// Rung 6: the copies bypass the registers: cp.async goes from global to shared
// memory on its own. Copies of four words cannot turn A, so A stays as it lies,
// and a thread reads four steps of depth of a row at once.
//
//   copy4             starts the copy of four words
//   sgemm_async_copy  the kernel
//
// @rung 60 kernel=sgemm_async_copy<128,128,16,32,64,8,8> block=256 tile=128x128
#include <cuda_pipeline.h>

#include "edges.cuh"

// Starts to copy words column to column + 3 of a row of X, which has
// `rows` x `columns`, into shared memory; zeros stand where the matrix ends.
// aligned: as in edges.cuh.
// --8<-- [start:copy]
__device__ __forceinline__ void copy4(float* to, const float* __restrict__ X,
                                      int row, int column, int rows,
                                      int columns, bool aligned) {
  const float* from = X + (size_t)row * columns + column;
  if (aligned) {
    if (row < rows && column < columns)
      __pipeline_memcpy_async(to, from, 16);
    else
      *reinterpret_cast<float4*>(to) = make_float4(0, 0, 0, 0);
  } else {
#pragma unroll 1  // seldom needed, and short code costs fewer registers
    for (int i = 0; i < 4; ++i) {
      if (row < rows && column + i < columns)
        __pipeline_memcpy_async(to + i, from + i, 4);
      else
        to[i] = 0;
    }
  }
}
// --8<-- [end:copy]

// C = alpha A B + beta C, row-major: A is m x k, B is k x n, C is m x n.
// Grid: x over the columns, y over the rows; a block of BM * BN / (TM * TN)
// threads for each tile of C.
//
//   BM, BN  rows and columns of a tile of C, which one block computes
//   BK      steps of depth in shared memory at a time: a multiple of 8
//   WM, WN  rows and columns of C that a warp computes; they divide BM and BN
//   TM, TN  rows and columns of C that a thread computes; TN a multiple of 4,
//           with WM * WN = 32 * TM * TN
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int WM, int WN, int TM, int TN>
__global__ void __launch_bounds__(BM* BN / (TM * TN), 2)
    sgemm_async_copy(const float* __restrict__ A, const float* __restrict__ B,
                     float* __restrict__ C, int m, int n, int k, float alpha,
                     float beta) {
  constexpr int THREADS = BM * BN / (TM * TN);
  static_assert(BK % 8 == 0 && TN % 4 == 0,
                "eight words of A, four of B at a time");
  static_assert(WM * WN == 32 * TM * TN && BM % WM == 0 && BN % WN == 0,
                "tiles of whole warps");
  static_assert(BM * BK % (4 * THREADS) == 0 && BK * BN % (4 * THREADS) == 0,
                "shared evenly");
  // A lies in slabs of 8 steps of depth: a row of a slab covers a quarter of
  // the banks, and the 32 / LANES = 4 rows that a warp reads at a time cover
  // all of them.
  __shared__ __align__(16) float As[2][BK / 8][BM][8];
  __shared__ __align__(16) float Bs[2][BK][BN];
  const int t = threadIdx.x;
  const int left = blockIdx.x * BN, top = blockIdx.y * BM;
  // --8<-- [start:place]
  // Lanes stand in LANES columns and 32 / LANES rows. They are numbered so that
  // of two neighbors one stands below the other, and both need the same words
  // of B. Two neighboring pairs stand side by side, and need the same words of
  // A.
  constexpr int LANES = WN / TN;
  const int warp = t / 32, lane = t % 32;
  const int lane_x = lane / 2 % LANES,
            lane_y = lane / (2 * LANES) * 2 + lane % 2;
  // The first column and row of this thread's results, in the tile. Lanes side
  // by side have four columns each; a lane's next four columns are NEXT further
  // on. So lanes side by side read words side by side. A lane's rows are BELOW
  // apart, so that lanes below each other read rows that follow each other.
  constexpr int NEXT = LANES * 4, BELOW = 32 / LANES;
  const int x = warp % (BN / WN) * WN + lane_x * 4,
            y = warp / (BN / WN) * WM + lane_y;
  const bool aligned = k % 4 == 0 && n % 4 == 0;
  float sum[TM][TN] = {};
  // --8<-- [end:place]
  // --8<-- [start:load]
  const auto copy = [&](int stage, int start) {
#pragma unroll
    for (int first = 0; first < BM * BK / 4; first += THREADS) {
      const int i = (first + t) / 2;
      const int row = i % BM, slab = i / BM, inner = t % 2 * 4;
      copy4(&As[stage][slab][row][inner], A, top + row,
            start + slab * 8 + inner, m, k, aligned);
    }
#pragma unroll
    for (int first = 0; first < BK * BN / 4; first += THREADS) {
      const int i = first + t;
      const int inner = i / (BN / 4), column = i % (BN / 4) * 4;
      copy4(&Bs[stage][inner][column], B, start + inner, left + column, k, n,
            aligned);
    }
    __pipeline_commit();
  };
  // --8<-- [end:load]
  // --8<-- [start:pipeline]
  // --8<-- [start:ahead]
  int stage = 0;
  copy(stage, 0);
  for (int start = 0; start < k; start += BK) {
    // This thread's part of the tile has arrived; behind the barrier all parts
    // have, and no thread reads the other buffer any more.
    __pipeline_wait_prior(0);
    __syncthreads();
    copy(stage ^ 1, start + BK);
    // --8<-- [end:ahead]
    // --8<-- [start:multiply]
#pragma unroll
    for (int i = 0; i < BK; i += 4) {
      __align__(16) float a[TM][4], b[TN];
#pragma unroll
      for (int r = 0; r < TM; ++r)
        *reinterpret_cast<float4*>(a[r]) = *reinterpret_cast<const float4*>(
            &As[stage][i / 8][y + r * BELOW][i % 8]);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int c = 0; c < TN; c += 4)
          *reinterpret_cast<float4*>(&b[c]) = *reinterpret_cast<const float4*>(
              &Bs[stage][i + j][x + c / 4 * NEXT]);
#pragma unroll
        for (int r = 0; r < TM; ++r)
#pragma unroll
          for (int c = 0; c < TN; ++c) sum[r][c] += a[r][j] * b[c];
      }
    }
    // --8<-- [end:multiply]
    // --8<-- [start:turn]
    stage ^= 1;
  }
  // --8<-- [end:turn]
  // --8<-- [end:pipeline]
  // --8<-- [start:store]
#pragma unroll
  for (int r = 0; r < TM; ++r)
#pragma unroll
    for (int c = 0; c < TN; c += 4)
      update4(C, top + y + r * BELOW, left + x + c / 4 * NEXT, m, n, aligned,
              alpha, &sum[r][c], beta);
  // --8<-- [end:store]
}
// --8<-- [end:kernel]
