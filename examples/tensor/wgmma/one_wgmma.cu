// One stage of products by one warpgroup, with descriptors as the host chooses
// them. It shows what wgmma reads.
// requires: sm_90a
#include "ptx/tma.cuh"
#include "tensor/ladder/products.cuh"

// C = A B in fp32: A is 64 x 64; B is 64 x BN, or with B_ALONG, where its
// columns are lines, BN x 64. leading, stride: the distances of B's descriptor
// in bytes; next: bytes from 16 steps of depth to the next 16. Behind B there
// are as many bytes of zeros, since wrong distances lead there. One block of
// 128 threads.
// --8<-- [start:kernel]
template <int BN, bool B_ALONG>
__global__ void __launch_bounds__(128)
    one_wgmma(const __grid_constant__ CUtensorMap A,
              const __grid_constant__ CUtensorMap B, float* C, unsigned leading,
              unsigned stride, unsigned next) {
  __shared__ __align__(1024) unsigned char tile_a[BOX];
  constexpr int BYTES_B = BN / 64 * BOX;
  __shared__ __align__(1024) unsigned char tile_b[2 * BYTES_B];
  __shared__ Barrier arrived;
  for (int i = threadIdx.x; i < BYTES_B; i += 128) tile_b[BYTES_B + i] = 0;
  fence_for_tma();  // wgmma sees these zeros, too
  if (threadIdx.x == 0) {
    init(&arrived, 1);
    fence_init();
    arrive_and_expect(&arrived, BOX + BYTES_B);
    copy_box(tile_a, A, 0, 0, &arrived);
    for (int i = 0; i < BN; i += 64)
      copy_box(tile_b + i * 128, B, B_ALONG ? i : 0, B_ALONG ? 0 : i, &arrived);
  }
  __syncthreads();
  wait(&arrived, 0);
  float sum[BN / 2];
  const Descriptor of_a(shared_address(tile_a));
  const Descriptor of_b(shared_address(tile_b), leading, stride);
  fence_sums();
#pragma unroll
  for (int i = 0; i < 4; ++i)
    wgmma<true, B_ALONG>(sum, of_a.at(i * 32), of_b.at(i * next), i > 0);
  close_products();
  wait_for_products<0>();
  const int t = threadIdx.x, row = t / 32 * 16 + t % 32 / 4;
#pragma unroll
  for (int i = 0; i < BN / 2; ++i)
    C[(row + i % 4 / 2 * 8) * BN + i / 4 * 8 + t % 4 * 2 + i % 2] = sum[i];
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance one_wgmma<128, false>
// @instance one_wgmma<128, true>
