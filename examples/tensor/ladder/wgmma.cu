// Rung 7: products of a warpgroup. The TMA brings boxes of A and B in the
// layout that wgmma reads. There is one stage: copy, wait, multiply, wait.
// @rung 60 kernel=gemm_wgmma<128> block=128 tile=128x64 box_a=64x64
// requires: sm_90a
#include "products.cuh"
#include "ptx/tma.cuh"

// C = A B in bf16 with sums in fp32, row-major: A is m x k, B is k x n, C is
// m x n; k and n are multiples of 8. A and B come as maps, whose boxes are
// 64 x 64 with the swizzle of 128 bytes. Grid: x over the columns, y over the
// rows. A block, one warpgroup, computes 64 rows and BN columns of C; BN is 64,
// 128, 192 or 256.
// --8<-- [start:kernel]
template <int BN>
__global__ void __launch_bounds__(128)
    gemm_wgmma(const __grid_constant__ CUtensorMap A,
               const __grid_constant__ CUtensorMap B,
               __nv_bfloat16* __restrict__ C, int m, int n, int k) {
  __shared__ __align__(1024) unsigned char tile_a[BOX], tile_b[BN / 64 * BOX];
  __shared__ Barrier arrived;
  const int top = blockIdx.y * 64, left = blockIdx.x * BN;
  if (threadIdx.x == 0) {
    init(&arrived, 1);
    fence_init();
  }
  __syncthreads();

  // --8<-- [start:loop]
  float sum[BN / 2];
  for (int start = 0, parity = 0; start < k; start += BK, parity ^= 1) {
    if (threadIdx.x == 0) {
      arrive_and_expect(&arrived, (1 + BN / 64) * BOX);
      copy_box(tile_a, A, top, start, &arrived);
#pragma unroll
      for (int box = 0; box < BN / 64; ++box)
        copy_box(tile_b + box * BOX, B, start, left + box * 64, &arrived);
    }
    wait(&arrived, parity);
    multiply_stage(sum, shared_address(tile_a), shared_address(tile_b),
                   start > 0);
    wait_for_products<0>();
    __syncthreads();  // everyone has read the stage
  }
  // --8<-- [end:loop]
  store_sums(sum, C, top, left, m, n);
}
// --8<-- [end:kernel]
