// Rung 3: `mma.sync`, the instruction below WMMA, for which it is known which
// lane holds what. Tiles lie in shared memory without bank conflicts and
// without padding.
// @rung 30 kernel=gemm_mma_sync block=256 tile=128x128
// requires: sm_80
#include "warps.cuh"

// Rows and columns of C for a block, and for a warp.
constexpr int BM = 128, BN = 128, WM = 64, WN = 32;
constexpr int THREADS = BM / WM * (BN / WN) * 32;

// C = A B in bf16 with sums in fp32, row-major: A is m x k, B is k x n, C is
// m x n; k and n are multiples of 8. Grid: x over the columns, y over the rows.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    gemm_mma_sync(const __nv_bfloat16* __restrict__ A,
                  const __nv_bfloat16* __restrict__ B,
                  __nv_bfloat16* __restrict__ C, int m, int n, int k) {
  __shared__ __align__(1024) unsigned char memory[(BM + BN) * 128];
  const unsigned tile_a = shared_address(memory), tile_b = tile_a + BM * 128;
  const int top = blockIdx.y * BM, left = blockIdx.x * BN;
  const int warp = threadIdx.x / 32;
  const int row = warp / (BN / WN) * WM, column = warp % (BN / WN) * WN;
  float sum[WM / 16][WN / 8][4] = {};
  Fragments<WM, WN> part;
  for (int start = 0; start < k; start += BK) {
    copy_stage<BM, BN, THREADS>(tile_a, A, B, m, n, k, top, left, start);
    commit();
    wait_for_all_but<0>();
    __syncthreads();  // everyone's copies have arrived
#pragma unroll
    for (int step = 0; step < BK / 16; ++step) {
      part.load(tile_a, tile_b, row, column, step);
      part.multiply(sum);
    }
    __syncthreads();  // everyone has read the stage
  }
  store_warp(sum, C, top + row, left + column, m, n);
}
// --8<-- [end:kernel]
