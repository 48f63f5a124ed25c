// sgemm_warp_tile with a choice of how a warp's lanes are numbered. COLUMNS has
// a 1 for each of the five bits of a lane's number that says in which column
// the lane stands; the other bits say in which row.
//
//   gather       the bits of a lane's number that a mask selects
//   largest      the largest number that these bits can be
//   sgemm_lanes  the kernel
//
// @rung kernel=sgemm_lanes<128,128,16,32,64,8,8,14> block=256 tile=128x128
#include "gemm/ladder/edges.cuh"

// --8<-- [start:gather]
// The bits of a lane's number that MASK selects, pushed together.
template <int MASK>
__device__ __forceinline__ int gather(int lane) {
  int found = 0, to = 0;
#pragma unroll
  for (int bit = 0; bit < 5; ++bit)
    if (MASK >> bit & 1) found |= (lane >> bit & 1) << to++;
  return found;
}
// --8<-- [end:gather]

// The largest number that the bits of a mask can be.
__host__ __device__ constexpr int largest(int mask) {
  return mask == 0       ? 0
         : mask % 2 == 1 ? 2 * largest(mask / 2) + 1
                         : largest(mask / 2);
}

// C = alpha A B + beta C, row-major: A is m x k, B is k x n, C is m x n.
// Grid: x over the columns, y over the rows; a block of BM * BN / (TM * TN)
// threads for each tile of C.
//
//   BM, BN   rows and columns of a tile of C, which one block computes
//   BK       steps of depth in shared memory at a time: a multiple of 8
//   WM, WN   rows and columns of C that a warp computes; they divide BM and BN
//   TM, TN   rows and columns of C that a thread computes: multiples of 4, with
//            WM * WN = 32 * TM * TN
//   COLUMNS  the bits of a lane's number that say its column: as many as tell
//            WN / TN columns apart
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int COLUMNS>
__global__ void __launch_bounds__(BM* BN / (TM * TN), 2)
    sgemm_lanes(const float* __restrict__ A, const float* __restrict__ B,
                float* __restrict__ C, int m, int n, int k, float alpha,
                float beta) {
  constexpr int THREADS = BM * BN / (TM * TN);
  static_assert(BK % 8 == 0 && TM % 4 == 0 && TN % 4 == 0,
                "four words at a time");
  static_assert(WM * WN == 32 * TM * TN && BM % WM == 0 && BN % WN == 0,
                "tiles of whole warps");
  static_assert(BM * BK % (4 * THREADS) == 0 && BK * BN % (4 * THREADS) == 0,
                "shared evenly");
  // Two lanes store the same row of A, four rows of As apart. The 4 * 4 words
  // of padding between them are half the banks, so the 16 such pairs of a warp
  // use every bank once.
  __shared__ __align__(16) float As[BK][BM + 4];
  __shared__ __align__(16) float Bs[BK][BN];
  const int t = threadIdx.x;
  const int left = blockIdx.x * BN, top = blockIdx.y * BM;
  // --8<-- [start:place]
  constexpr int LANES = WN / TN;
  static_assert(largest(COLUMNS) == LANES - 1,
                "as many columns as the bits can tell apart");
  const int warp = t / 32, lane = t % 32;
  const int lane_x = gather<COLUMNS>(lane),
            lane_y = gather<31 & ~COLUMNS>(lane);
  // The first column and row of this thread's results, in the tile. Lanes side
  // by side have four columns each; a lane's next four columns are NEXT further
  // on. So lanes side by side read words side by side.
  constexpr int NEXT = LANES * 4;
  const int x = warp % (BN / WN) * WN + lane_x * 4,
            y = warp / (BN / WN) * WM + lane_y * TM;
  const bool aligned = k % 4 == 0 && n % 4 == 0;
  float sum[TM][TN] = {};
  // --8<-- [end:place]
  for (int start = 0; start < k; start += BK) {
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
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance sgemm_lanes<128,128,16,128,16,8,8,2>
