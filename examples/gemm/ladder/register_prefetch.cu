// Rung 9: as rung 5, but a thread reads the words of the next depth from shared
// memory while it multiplies those of this one. Its registers hold words of two
// depths.
// @rung 85 kernel=sgemm_register_prefetch<128,128,8,32,64,8,8> block=256 tile=128x128
#include "edges.cuh"

// C = alpha A B + beta C, row-major: A is m x k, B is k x n, C is m x n.
// Grid: x over the columns, y over the rows; a block of BM * BN / (TM * TN)
// threads for each tile of C.
//
//   BM, BN  rows and columns of a tile of C, which one block computes
//   BK      steps of depth in shared memory at a time: a multiple of 8
//   WM, WN  rows and columns of C that a warp computes; they divide BM and BN
//   TM, TN  rows and columns of C that a thread computes: multiples of 4,
//           with WM * WN = 32 * TM * TN
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int WM, int WN, int TM, int TN>
__global__ void __launch_bounds__(BM* BN / (TM * TN), 2)
    sgemm_register_prefetch(const float* __restrict__ A,
                            const float* __restrict__ B, float* __restrict__ C,
                            int m, int n, int k, float alpha, float beta) {
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
  __shared__ __align__(16) float As[2][BK][BM + 4];
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
  // on. So lanes side by side read words side by side.
  constexpr int NEXT = LANES * 4;
  const int x = warp % (BN / WN) * WN + lane_x * 4,
            y = warp / (BN / WN) * WM + lane_y * TM;
  const bool aligned = k % 4 == 0 && n % 4 == 0;
  float sum[TM][TN] = {};
  // --8<-- [end:place]
  // --8<-- [start:load]
  // --8<-- [start:fetch]
  // The tile that is on its way, in registers: a float4 has four words of A or
  // B.
  constexpr int OF_A = BM * BK / 4 / THREADS, OF_B = BK * BN / 4 / THREADS;
  float4 a_next[OF_A], b_next[OF_B];
  const auto fetch = [&](int start) {
#pragma unroll
    for (int part = 0; part < OF_A; ++part) {
      // Two threads bring 8 words of a row of A: a sector of 32 bytes.
      const int i = (part * THREADS + t) / 2;
      const int row = i % BM, inner = i / BM * 8 + t % 2 * 4;
      a_next[part] = load4(A, top + row, start + inner, m, k, aligned);
    }
#pragma unroll
    for (int part = 0; part < OF_B; ++part) {
      const int i = part * THREADS + t;
      const int inner = i / (BN / 4), column = i % (BN / 4) * 4;
      b_next[part] = load4(B, start + inner, left + column, k, n, aligned);
    }
  };
  // --8<-- [end:fetch]
  const auto keep = [&](int stage) {
#pragma unroll
    for (int part = 0; part < OF_A; ++part) {
      const int i = (part * THREADS + t) / 2;
      const int row = i % BM, inner = i / BM * 8 + t % 2 * 4;
      const float4 a = a_next[part];
      As[stage][inner][row] = a.x;
      As[stage][inner + 1][row] = a.y;
      As[stage][inner + 2][row] = a.z;
      As[stage][inner + 3][row] = a.w;
    }
#pragma unroll
    for (int part = 0; part < OF_B; ++part) {
      const int i = part * THREADS + t;
      const int inner = i / (BN / 4), column = i % (BN / 4) * 4;
      *reinterpret_cast<float4*>(&Bs[stage][inner][column]) = b_next[part];
    }
  };
  // --8<-- [end:load]
  // --8<-- [start:pipeline]
  // --8<-- [start:read]
  // The words of A and of B for one depth; there is room for two.
  __align__(16) float a[2][TM], b[2][TN];
  const auto read = [&](int to, int stage, int i) {
#pragma unroll
    for (int r = 0; r < TM; r += 4)
      *reinterpret_cast<float4*>(&a[to][r]) =
          *reinterpret_cast<const float4*>(&As[stage][i][y + r]);
#pragma unroll
    for (int c = 0; c < TN; c += 4)
      *reinterpret_cast<float4*>(&b[to][c]) =
          *reinterpret_cast<const float4*>(&Bs[stage][i][x + c / 4 * NEXT]);
  };
  // --8<-- [end:read]
  // --8<-- [start:ahead]
  int stage = 0;
  fetch(0);
  keep(stage);
  __syncthreads();
  read(0, stage, 0);
  for (int start = 0; start < k; start += BK) {
    // Ask for the next tile; behind the last one there are zeros.
    fetch(start + BK);
#pragma unroll
    for (int i = 0; i < BK; ++i) {
      if (i == BK - 1) {
        // No thread reads the other buffer: all have passed the barrier since.
        // Of this buffer the thread already has all that it needs.
        stage ^= 1;
        keep(stage);
        __syncthreads();
      }
      // The words of the next depth come while this one is multiplied.
      read((i + 1) % 2, stage, (i + 1) % BK);
#pragma unroll
      for (int r = 0; r < TM; ++r)
#pragma unroll
        for (int c = 0; c < TN; ++c) sum[r][c] += a[i % 2][r] * b[i % 2][c];
    }
  }
  // --8<-- [end:ahead]
  // --8<-- [end:pipeline]
  // --8<-- [start:store]
#pragma unroll
  for (int r = 0; r < TM; ++r)
#pragma unroll
    for (int c = 0; c < TN; c += 4)
      update4(C, top + y + r, left + x + c / 4 * NEXT, m, n, aligned, alpha,
              &sum[r][c], beta);
  // --8<-- [end:store]
}
// --8<-- [end:kernel]
