// Rung 4: a ring of stages. Copies run ahead of the products by STAGES - 1
// stages.
// @rung 40 kernel=gemm_mma_stages<3> block=256 tile=128x128 stage=32768
// requires: sm_80
#include "warps.cuh"

// Rows and columns of C for a block, and for a warp.
constexpr int BM = 128, BN = 128, WM = 64, WN = 32;
constexpr int THREADS = BM / WM * (BN / WN) * 32, STAGE = (BM + BN) * 128;

// C = A B in bf16 with sums in fp32, row-major: A is m x k, B is k x n, C is
// m x n; k and n are multiples of 8. Grid: x over the columns, y over the rows.
// Dynamic shared memory: STAGES * STAGE bytes. STAGES: stages in the ring, at
// least 2.
// --8<-- [start:kernel]
template <int STAGES>
__global__ void __launch_bounds__(THREADS, STAGES < 4 ? 2 : 1)
    gemm_mma_stages(const __nv_bfloat16* __restrict__ A,
                    const __nv_bfloat16* __restrict__ B,
                    __nv_bfloat16* __restrict__ C, int m, int n, int k) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const unsigned stages = shared_address(memory);
  const int top = blockIdx.y * BM, left = blockIdx.x * BN;
  const int warp = threadIdx.x / 32;
  const int row = warp / (BN / WN) * WM, column = warp % (BN / WN) * WN;
  const auto copy = [&](int stage, int start) {
    if (start < k)
      copy_stage<BM, BN, THREADS>(stages + stage * STAGE, A, B, m, n, k, top,
                                  left, start);
    commit();
  };
  float sum[WM / 16][WN / 8][4] = {};
  Fragments<WM, WN> part;
  // --8<-- [start:loop]
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) copy(s, s * BK);
  int stage = 0;
  for (int start = 0; start < k; start += BK) {
    wait_for_all_but<STAGES - 2>();
    __syncthreads();  // this stage has arrived; all have read the last one
    copy(stage ? stage - 1 : STAGES - 1, start + (STAGES - 1) * BK);
    const unsigned tile_a = stages + stage * STAGE, tile_b = tile_a + BM * 128;
#pragma unroll
    for (int step = 0; step < BK / 16; ++step) {
      part.load(tile_a, tile_b, row, column, step);
      part.multiply(sum);
    }
    stage = stage + 1 < STAGES ? stage + 1 : 0;
  }
  // --8<-- [end:loop]
  store_warp(sum, C, top + row, left + column, m, n);
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance gemm_mma_stages<4>
// @instance gemm_mma_stages<2>
