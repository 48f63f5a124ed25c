// Rung 6: copies between the products. Each of the first steps of a stage
// starts a share of the copies, with addresses that are only advanced, and no
// branch.
// @rung 55 kernel=gemm_mma_spread<4> block=256 tile=256x128 stage=49152
// requires: sm_80
#include "copies.cuh"
#include "hopper/order.cuh"

// Rows and columns of C for a block, and for a warp.
constexpr int BM = 128, BN = 256, WM = 64, WN = 64;
// Tiles below each other in the order: 132 tiles at a time then are nearly
// square.
constexpr int GROUP = 16;
constexpr int THREADS = BM / WM * (BN / WN) * 32, STAGE = (BM + BN) * 128;

// C = A B in bf16 with sums in fp32, row-major: A is m x k, B is k x n, C is
// m x n; k and n are multiples of 8. Grid: x over the columns, y over the rows.
// Dynamic shared memory: STAGES * STAGE bytes. STAGES: stages in the ring, at
// least 2.
// --8<-- [start:kernel]
template <int STAGES>
__global__ void __launch_bounds__(THREADS, 1)
    gemm_mma_spread(const __nv_bfloat16* __restrict__ A,
                    const __nv_bfloat16* __restrict__ B,
                    __nv_bfloat16* __restrict__ C, int m, int n, int k) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const unsigned stages = shared_address(memory);
  const int2 tile = place_of(blockIdx.y * gridDim.x + blockIdx.x, GROUP,
                             gridDim.y, gridDim.x);
  const int top = tile.y * BM, left = tile.x * BN;
  const int warp = threadIdx.x / 32;
  const int row = warp / (BN / WN) * WM, column = warp % (BN / WN) * WN;
  Copies<BM, BN, THREADS> copies(A, B, m, n, k, top, left);
  constexpr int COUNT = copies.COUNT, STEPS = BK / 16;
  // Copies in each step but the last, which starts none.
  constexpr int SHARE = (COUNT + STEPS - 2) / (STEPS - 1);
  float sum[WM / 16][WN / 8][4] = {};
  Fragments<WM, WN> parts[2];
  // --8<-- [start:loop]
#pragma unroll 1
  for (int s = 0; s < STAGES - 1; ++s) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) copies.start(stages + s * STAGE, i);
    copies.advance();
    commit();
  }
  int stage = 0, spare = STAGES - 1;
  wait_for_all_but<STAGES - 2>();
  __syncthreads();
  parts[0].load(stages, stages + BM * 128, row, column, 0);
#pragma unroll 1
  for (int start = 0; start < k; start += BK) {
    unsigned tile = stages + stage * STAGE;
    const unsigned to = stages + spare * STAGE;
    spare = stage;
    stage = stage + 1 < STAGES ? stage + 1 : 0;
#pragma unroll
    // --8<-- [start:steps]
    for (int step = 0; step < STEPS; ++step) {
      if (step + 1 == STEPS) {  // the next fragments are of the next stage
        copies.advance();
        commit();
        wait_for_all_but<STAGES - 2>();
        __syncthreads();  // it has arrived, and all have read this one
        tile = stages + stage * STAGE;
      }
      parts[(step + 1) % 2].load(tile, tile + BM * 128, row, column,
                                 (step + 1) % STEPS);
#pragma unroll
      for (int i = step * SHARE; i < min((step + 1) * SHARE, COUNT); ++i)
        copies.start(to, i);
      parts[step % 2].multiply(sum);
    }
    // --8<-- [end:steps]
  }
  // --8<-- [end:loop]
  store_warp(sum, C, top + row, left + column, m, n);
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance gemm_mma_spread<3>
// @instance gemm_mma_spread<2>
