// sgemm_vectorized with a choice of layouts for its tiles: the pitch of their
// rows, and whether the words of a row change places.
//
//   place_a, place_b  where words stand if they change places
//   sgemm_layout      the kernel
//
// @rung kernel=sgemm_layout<128,128,8,8,8,128,128,1> block=256 tile=128x128
#include "gemm/ladder/edges.cuh"

// --8<-- [start:places]
// Where row `row` of A stands at depth `inner`: at depths 4 to 7 rows that are
// 16 apart change places, so that two lanes which store the same row, four
// depths apart, meet different banks.
__device__ __forceinline__ int place_a(int inner, int row) {
  return row ^ inner / 4 % 2 * 16;
}

// Where four columns of B stand: in every second 32 columns two neighboring
// groups of four change places, so that lanes eight columns apart use even
// groups of banks first, then odd ones.
__device__ __forceinline__ int place_b(int column) {
  return column ^ column / 32 % 2 * 4;
}
// --8<-- [end:places]

// C = alpha A B + beta C, row-major: A is m x k, B is k x n, C is m x n.
// Grid: x over the columns, y over the rows; a block of BM * BN / (TM * TN)
// threads for each tile of C.
//
//   BM, BN            rows and columns of a tile of C, which one block computes
//   BK                steps of depth in shared memory: a multiple of 8
//   TM, TN            rows and columns of C of a thread: multiples of 4
//   PITCH_A, PITCH_B  words from a depth to the next in the tiles of A and B:
//                     at least BM and BN, multiples of 4
//   SWIZZLE           1 if words change places, else 0
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int TM, int TN, int PITCH_A, int PITCH_B,
          int SWIZZLE>
__global__ void __launch_bounds__(BM* BN / (TM * TN), 2)
    sgemm_layout(const float* __restrict__ A, const float* __restrict__ B,
                 float* __restrict__ C, int m, int n, int k, float alpha,
                 float beta) {
  constexpr int THREADS = BM * BN / (TM * TN);
  static_assert(BK % 8 == 0 && TM % 4 == 0 && TN % 4 == 0,
                "four words at a time");
  static_assert(BM * BK % (4 * THREADS) == 0 && BK * BN % (4 * THREADS) == 0,
                "shared evenly");
  __shared__ __align__(16) float As[BK][PITCH_A];
  __shared__ __align__(16) float Bs[BK][PITCH_B];
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
      const int to =
          SWIZZLE ? place_a(inner, row) : row;  // the same for all four depths
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
      *reinterpret_cast<float4*>(
          &Bs[inner][SWIZZLE ? place_b(column) : column]) = b;
    }
    __syncthreads();
    // --8<-- [end:load]
    // --8<-- [start:multiply]
#pragma unroll
    for (int i = 0; i < BK; ++i) {
      __align__(16) float a[TM], b[TN];
#pragma unroll
      for (int r = 0; r < TM; r += 4)
        *reinterpret_cast<float4*>(&a[r]) = *reinterpret_cast<const float4*>(
            &As[i][SWIZZLE ? place_a(i, y + r) : y + r]);
#pragma unroll
      for (int c = 0; c < TN; c += 4)
        *reinterpret_cast<float4*>(&b[c]) = *reinterpret_cast<const float4*>(
            &Bs[i][SWIZZLE ? place_b(x + c) : x + c]);
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

// Instances that are compiled by the tests:
// @instance sgemm_layout<128,128,8,8,8,132,128,0>
