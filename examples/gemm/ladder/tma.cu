// Rung 8: one thread asks for a whole tile, and the tensor memory accelerator
// (TMA) of a Hopper GPU or newer brings it. The TMA computes the addresses and
// writes zeros for what lies beyond the edges.
//
//   Barrier            a barrier that counts bytes
//   shared_address     an address of shared memory as PTX takes it
//   init, wait         initialize it, and wait at it
//   arrive_and_expect  announces bytes
//   copy_box           starts the copy of a box
//   sgemm_tma          the kernel
//
// @rung 80 kernel=sgemm_tma<128,128,8,32,64,8,8,4> block=256 tile=128x128
// requires: sm_90
#include <cuda.h>

#include "edges.cuh"

// A barrier in shared memory that also counts bytes. A phase ends when one
// thread has arrived, and all bytes that it announced have come. Phases are
// told apart by their parity: 0, 1, 0, ...
// --8<-- [start:barrier]
using Barrier = unsigned long long;

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ void init(Barrier* barrier) {
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier))
      : "memory");
}

__device__ __forceinline__ void arrive_and_expect(Barrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void wait(Barrier* barrier, int parity) {
  int done = 0;
  while (!done) {
    asm volatile(
        "{ .reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.b32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
}
// --8<-- [end:barrier]

// Starts to copy the box of a matrix whose first word is in this row and
// column; the column is a multiple of 4 words, and the map says how large a box
// is. The bytes of the box count for the barrier; words beyond the matrix, on
// whichever side, arrive as zeros.
// --8<-- [start:copy]
__device__ __forceinline__ void copy_box(float* to, const CUtensorMap& map,
                                         int row, int column,
                                         Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile"
      ".mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
      "l"(&map), "r"(column), "r"(row), "r"(shared_address(barrier))
      : "memory");
}
// --8<-- [end:copy]

// C = alpha A B + beta C, row-major: A is m x k, B is k x n, C is m x n. A and
// B come as tensor maps, which hold address, extents and row length; a box of A
// is BM x 8 words, one of B is BK x BN. Grid: x over the columns, y over the
// rows; a block of BM * BN / (TM * TN) threads for each tile of C.
//
//   BM, BN  rows and columns of a tile of C, which one block computes
//   BK      steps of depth in a buffer: a multiple of 8
//   WM, WN  rows and columns of C that a warp computes; they divide BM and BN
//   TM, TN  rows and columns of C that a thread computes; TN a multiple of 4,
//           with WM * WN = 32 * TM * TN
//   STAGES  buffers in shared memory, at least 2: one is multiplied, the others
//           are on their way
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int STAGES>
__global__ void __launch_bounds__(BM* BN / (TM * TN), 2)
    sgemm_tma(const __grid_constant__ CUtensorMap A,
              const __grid_constant__ CUtensorMap B, float* __restrict__ C,
              int m, int n, int k, float alpha, float beta) {
  static_assert(BK % 8 == 0 && TN % 4 == 0,
                "eight words of A, four of B at a time");
  static_assert(WM * WN == 32 * TM * TN && BM % WM == 0 && BN % WN == 0,
                "tiles of whole warps");
  // A lies in slabs of 8 steps of depth: a row of a slab covers a quarter of
  // the banks, and the 32 / LANES = 4 rows that a warp reads at a time cover
  // all of them.
  __shared__ __align__(128) float As[STAGES][BK / 8][BM][8];
  __shared__ __align__(128) float Bs[STAGES][BK][BN];
  __shared__ Barrier arrived[STAGES];
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
  const bool aligned = n % 4 == 0;
  float sum[TM][TN] = {};
  // --8<-- [end:place]
  // --8<-- [start:load]
  const auto copy = [&](int stage, int start) {
    if (t != 0 || start >= k) return;
    arrive_and_expect(&arrived[stage], (BM + BN) * BK * sizeof(float));
#pragma unroll
    for (int slab = 0; slab < BK / 8; ++slab)
      copy_box(&As[stage][slab][0][0], A, top, start + slab * 8,
               &arrived[stage]);
    copy_box(&Bs[stage][0][0], B, start, left, &arrived[stage]);
  };
  // --8<-- [end:load]
  // --8<-- [start:ahead]
  if (t == 0) {
    for (int s = 0; s < STAGES; ++s) init(&arrived[s]);
    // The TMA must see these barriers, too.
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  int stage = 0, spare = STAGES - 1, parity = 0;
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) copy(s, s * BK);
  for (int start = 0; start < k; start += BK) {
    __syncthreads();  // no thread reads the buffer before this one any more
    copy(spare, start + (STAGES - 1) * BK);
    wait(&arrived[stage], parity);
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
    spare = stage;
    stage = stage + 1 < STAGES ? stage + 1 : 0;
    if (stage == 0) parity ^= 1;
  }
  // --8<-- [end:turn]
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
