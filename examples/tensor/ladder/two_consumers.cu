// Rung 9: a larger tile for two warpgroups. Each has 64 rows and all 256
// columns, so every byte that is copied takes part in more products.
//
//   Shared              what lies in shared memory
//   gemm_two_consumers  the kernel
//
// @rung 80 kernel=gemm_two_consumers<3> block=384 tile=256x128 box_a=128x64 stage=49152
// requires: sm_90a
#include "products.cuh"
#include "ptx/tma.cuh"

constexpr int BM = 128, BN = 256;

// STAGES: stages in the ring, at least 2.
template <int STAGES>
struct Shared {
  unsigned char a[STAGES][BM / 64 * BOX], b[STAGES][BN / 64 * BOX];
  Barrier full[STAGES], empty[STAGES];
};

// C = A B in bf16 with sums in fp32, row-major: A is m x k, B is k x n, C is
// m x n; k and n are multiples of 8. A and B come as maps with boxes of BM x 64
// and 64 x 64. Grid: x over the columns, y over the rows. A block computes
// BM x BN of C. Dynamic shared memory: Shared. A block fills an SM.
// --8<-- [start:kernel]
template <int STAGES>
__global__ void __launch_bounds__(384, 1)
    gemm_two_consumers(const __grid_constant__ CUtensorMap A,
                       const __grid_constant__ CUtensorMap B,
                       __nv_bfloat16* __restrict__ C, int m, int n, int k) {
  static_assert(STAGES > 1, "a stage is free only when the next has come");
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared<STAGES>& s = *reinterpret_cast<Shared<STAGES>*>(memory);
  const int top = blockIdx.y * BM, left = blockIdx.x * BN;
  const int steps = (k + BK - 1) / BK;
  if (threadIdx.x == 0) {
    // Both consumers have to have read a stage.
    for (int i = 0; i < STAGES; ++i) init(&s.full[i], 1), init(&s.empty[i], 2);
    fence_init();
  }
  __syncthreads();

  Ring<STAGES> ring;
  if (threadIdx.x < 128) {
    give_registers_back<40>();
    if (threadIdx.x != 0) return;
    for (int step = 0; step < steps; ++step, ring.advance()) {
      const int i = ring.stage;
      wait(&s.empty[i], ring.parity ^ 1);
      arrive_and_expect(&s.full[i], sizeof s.a[0] + sizeof s.b[0]);
      copy_box(s.a[i], A, top, step * BK, &s.full[i]);
#pragma unroll
      for (int box = 0; box < BN / 64; ++box)
        copy_box(s.b[i] + box * BOX, B, step * BK, left + box * 64, &s.full[i]);
    }
  } else {
    take_registers<232>();
    // --8<-- [start:consumer]
    const int consumer = threadIdx.x / 128 - 1;
    float sum[BN / 2];
    for (int step = 0, before = 0; step < steps; ++step) {
      const int i = ring.stage;
      wait(&s.full[i], ring.parity);
      multiply_stage(sum, shared_address(s.a[i] + consumer * BOX),
                     shared_address(s.b[i]), step > 0);
      wait_for_products<1>();
      if (step > 0 && threadIdx.x % 128 == 0) arrive(&s.empty[before]);
      before = i;
      ring.advance();
    }
    wait_for_products<0>();
    store_sums(sum, C, top + consumer * 64, left, m, n);
    // --8<-- [end:consumer]
  }
}
// --8<-- [end:kernel]
