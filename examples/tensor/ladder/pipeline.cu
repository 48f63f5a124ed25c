// Rung 8: a pipeline. One thread of the first warpgroup asks the TMA for stages
// ahead of time; the second warpgroup multiplies. Both wait only for barriers:
// `full` says that a stage has arrived, `empty` that it has been read.
//
//   Shared         what lies in shared memory
//   gemm_pipeline  the kernel
//
// @rung 70 kernel=gemm_pipeline<3> block=256 tile=128x128 box_a=128x64 stage=32768
// requires: sm_90a
#include "products.cuh"
#include "ptx/tma.cuh"

constexpr int BM = 128, BN = 128;

// --8<-- [start:shared]
// STAGES: stages in the ring, at least 2.
template <int STAGES>
struct Shared {
  unsigned char a[STAGES][BM / 64 * BOX], b[STAGES][BN / 64 * BOX];
  Barrier full[STAGES], empty[STAGES];
};
// --8<-- [end:shared]

// C = A B in bf16 with sums in fp32, row-major: A is m x k, B is k x n, C is
// m x n; k and n are multiples of 8. A and B come as maps with boxes of BM x 64
// and 64 x 64. Grid: x over the columns, y over the rows. A block computes
// BM x BN of C. Dynamic shared memory: Shared. Two blocks share an SM.
// --8<-- [start:kernel]
template <int STAGES>
__global__ void __launch_bounds__(256, 2)
    gemm_pipeline(const __grid_constant__ CUtensorMap A,
                  const __grid_constant__ CUtensorMap B,
                  __nv_bfloat16* __restrict__ C, int m, int n, int k) {
  static_assert(STAGES > 1, "a stage is free only when the next has come");
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared<STAGES>& s = *reinterpret_cast<Shared<STAGES>*>(memory);
  const int top = blockIdx.y * BM, left = blockIdx.x * BN;
  const int steps = (k + BK - 1) / BK;
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) init(&s.full[i], 1), init(&s.empty[i], 1);
    fence_init();
  }
  __syncthreads();

  Ring<STAGES> ring;
  // --8<-- [start:producer]
  if (threadIdx.x < 128) {
    give_registers_back<40>();
    if (threadIdx.x != 0) return;
    for (int step = 0; step < steps; ++step, ring.advance()) {
      const int i = ring.stage;
      wait(&s.empty[i], ring.parity ^ 1);  // the first round: at once
      arrive_and_expect(&s.full[i], sizeof s.a[0] + sizeof s.b[0]);
      copy_box(s.a[i], A, top, step * BK, &s.full[i]);
#pragma unroll
      for (int box = 0; box < BN / 64; ++box)
        copy_box(s.b[i] + box * BOX, B, step * BK, left + box * 64, &s.full[i]);
    }
    // --8<-- [end:producer]
  } else {
    take_registers<208>();
    // --8<-- [start:consumer]
    float sum[BM / 64][BN / 2];
    for (int step = 0, before = 0; step < steps; ++step) {
      const int i = ring.stage;
      wait(&s.full[i], ring.parity);
#pragma unroll
      for (int row = 0; row < BM / 64; ++row)
        multiply_stage(sum[row], shared_address(s.a[i] + row * BOX),
                       shared_address(s.b[i]), step > 0);
      // The products of the step before have ended, and its stage is free.
      wait_for_products<BM / 64>();
      if (step > 0 && threadIdx.x == 128) arrive(&s.empty[before]);
      before = i;
      ring.advance();
    }
    wait_for_products<0>();
#pragma unroll
    for (int row = 0; row < BM / 64; ++row)
      store_sums(sum[row], C, top + row * 64, left, m, n);
    // --8<-- [end:consumer]
  }
}
// --8<-- [end:kernel]
