// Solutions of exercises.
//
//   swapped      where a row of A stands at each depth, for sgemm_deep
//   sgemm_deep   a turned tile of A to which four lanes store a row at a time
//   sgemm_pitch  block_tile_2d with longer rows of As
#include "gemm/ladder/edges.cuh"

// --8<-- [start:swapped]
// Where row `row` of A stands at depth `inner`: groups of eight rows change
// places, differently in each of the four groups of depths that four
// neighboring lanes store to.
__device__ __forceinline__ int swapped(int inner, int row) {
  return row ^ inner / 4 * 8;
}
// --8<-- [end:swapped]

// C = alpha A B + beta C, row-major: A is m x k, B is k x n, C is m x n.
// Grid: x over the columns, y over the rows; a block of BM * BN / (TM * TN)
// threads for each tile of C.
//
//   BM, BN  rows and columns of a tile of C; BM is a multiple of 32
//   BK      steps of depth in shared memory at a time: 16
//   TM, TN  rows and columns of C that a thread computes: multiples of 4
// --8<-- [start:deep]
template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(BM* BN / (TM * TN), 2)
    sgemm_deep(const float* __restrict__ A, const float* __restrict__ B,
               float* __restrict__ C, int m, int n, int k, float alpha,
               float beta) {
  constexpr int THREADS = BM * BN / (TM * TN);
  static_assert(BK == 16 && BM % 32 == 0 && TM % 4 == 0 && TN % 4 == 0,
                "four words at a time");
  static_assert(BM * BK % (4 * THREADS) == 0 && BK * BN % (4 * THREADS) == 0,
                "shared evenly");
  __shared__ __align__(16) float As[BK][BM];
  __shared__ __align__(16) float Bs[BK][BN];
  const int t = threadIdx.x;
  const int left = blockIdx.x * BN, top = blockIdx.y * BM;
  // The first column and row of this thread's results, in the tile.
  constexpr int NEXT = BN / TN * 4;  // as in conflict_free.cu
  const int x = t % (BN / TN) * 4, y = t / (BN / TN) * TM;
  const bool aligned = k % 4 == 0 && n % 4 == 0;
  float sum[TM][TN] = {};
  for (int start = 0; start < k; start += BK) {
    // Four threads bring 16 words of a row of A: two sectors.
#pragma unroll
    for (int first = 0; first < BM * BK / 4; first += THREADS) {
      const int row = (first + t) / 4, inner = t % 4 * 4;
      const float4 a = load4(A, top + row, start + inner, m, k, aligned);
      const int to = swapped(inner, row);  // the same for all four depths
      As[inner][to] = a.x;
      As[inner + 1][to] = a.y;
      As[inner + 2][to] = a.z;
      As[inner + 3][to] = a.w;
    }
#pragma unroll
    for (int first = 0; first < BK * BN / 4; first += THREADS) {
      const int i = first + t;
      const int inner = i / (BN / 4), column = i % (BN / 4) * 4;
      const float4 b = load4(B, start + inner, left + column, k, n, aligned);
      *reinterpret_cast<float4*>(&Bs[inner][column]) = b;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < BK; ++i) {
      __align__(16) float a[TM], b[TN];
#pragma unroll
      for (int r = 0; r < TM; r += 4)
        *reinterpret_cast<float4*>(&a[r]) =
            *reinterpret_cast<const float4*>(&As[i][swapped(i, y + r)]);
#pragma unroll
      for (int c = 0; c < TN; c += 4)
        *reinterpret_cast<float4*>(&b[c]) =
            *reinterpret_cast<const float4*>(&Bs[i][x + c / 4 * NEXT]);
#pragma unroll
      for (int r = 0; r < TM; ++r)
#pragma unroll
        for (int c = 0; c < TN; ++c) sum[r][c] += a[r] * b[c];
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < TM; ++r)
#pragma unroll
    for (int c = 0; c < TN; c += 4)
      update4(C, top + y + r, left + x + c / 4 * NEXT, m, n, aligned, alpha,
              &sum[r][c], beta);
}
// --8<-- [end:deep]

// The same product. PITCH: words from a row of As to the next, at least BK.
// --8<-- [start:pitch]
template <int BM, int BN, int BK, int TM, int TN, int PITCH>
__global__ void __launch_bounds__(BM* BN / (TM * TN))
    sgemm_pitch(const float* __restrict__ A, const float* __restrict__ B,
                float* __restrict__ C, int m, int n, int k, float alpha,
                float beta) {
  constexpr int THREADS = BM * BN / (TM * TN);
  static_assert(BM * BK % THREADS == 0 && BK * BN % THREADS == 0,
                "threads share a tile evenly");
  __shared__ __align__(16) float As[BM][PITCH];
  __shared__ float Bs[BK][BN];
  const int t = threadIdx.x;
  const int left = blockIdx.x * BN, top = blockIdx.y * BM;
  // The first column and row of this thread's results, in the tile.
  const int x = t % (BN / TN) * TN, y = t / (BN / TN) * TM;
  float sum[TM][TN] = {};
  for (int start = 0; start < k; start += BK) {
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
    // Not all BK steps at once: unrolled further, the loop takes over 128
    // registers, and an SM holds only one block.
#pragma unroll 2
    for (int i = 0; i < BK; ++i) {
      float a[TM], b[TN];
#pragma unroll
      for (int r = 0; r < TM; ++r) a[r] = As[y + r][i];
#pragma unroll
      for (int c = 0; c < TN; ++c) b[c] = Bs[i][x + c];
#pragma unroll
      for (int r = 0; r < TM; ++r)
#pragma unroll
        for (int c = 0; c < TN; ++c) sum[r][c] += a[r] * b[c];
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < TM; ++r) {
#pragma unroll
    for (int c = 0; c < TN; ++c) {
      const int row = top + y + r, column = left + x + c;
      if (row < m && column < n) {
        float* to = C + (size_t)row * n + column;
        *to = blend(alpha, sum[r][c], beta, to);
      }
    }
  }
}
// --8<-- [end:pitch]

// Instances that are compiled by the tests:
// @instance sgemm_deep<128,128,16,8,8>
// @instance sgemm_pitch<128,128,8,8,8,9>
// @instance sgemm_pitch<128,128,8,8,8,10>
