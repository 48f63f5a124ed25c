// Rung 12: results leave through shared memory. The consumers write boxes
// there, the TMA stores them, and the next tile is multiplied meanwhile.
//
//   Shared           what lies in shared memory
//   gemm_tma_stores  the kernel
//
// @rung 110 kernel=gemm_tma_stores<4,2,8> block=384 tile=256x128 box_a=128x64 stage=49152 cluster=2 boxes=4
// requires: sm_90a
#include "hopper/boxes.cuh"
#include "hopper/order.cuh"
#include "products.cuh"
#include "ptx/cluster.cuh"

constexpr int BM = 128, BN = 256, CLUSTER = 2;

// STAGES: stages in the ring, at least 2; BUFFERS: boxes of results for each
// consumer.
template <int STAGES, int BUFFERS>
struct Shared {
  unsigned char a[STAGES][BM / 64 * BOX], b[STAGES][BN / 64 * BOX];
  unsigned char c[2][BUFFERS][BOX];  // results, for each consumer
  Barrier full[STAGES], empty[STAGES];
};

// C = A B in bf16 with sums in fp32, row-major: A is m x k, B is k x n, C is
// m x n; k and n are multiples of 8. A, B and C come as maps with boxes of
// BM x 64, 64 x 64 and 64 x 64. Grid: a multiple of CLUSTER, as many blocks as
// there are SMs or fewer. A cluster computes CLUSTER * BM rows and BN columns
// of C at a time. Dynamic shared memory: Shared. GROUP: tiles below each other
// in the order.
// --8<-- [start:kernel]
template <int STAGES, int BUFFERS, int GROUP>
__global__ void __cluster_dims__(CLUSTER) __launch_bounds__(384, 1)
    gemm_tma_stores(const __grid_constant__ CUtensorMap A,
                    const __grid_constant__ CUtensorMap B,
                    const __grid_constant__ CUtensorMap C, int m, int n,
                    int k) {
  static_assert(STAGES > 1, "a stage is free only when the next has come");
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared<STAGES, BUFFERS>& s =
      *reinterpret_cast<Shared<STAGES, BUFFERS>*>(memory);
  const int tile_rows = (m + CLUSTER * BM - 1) / (CLUSTER * BM),
            tile_columns = (n + BN - 1) / BN;
  const int tiles = tile_rows * tile_columns, steps = (k + BK - 1) / BK;
  const int rank = rank_in_cluster(), first = blockIdx.x / CLUSTER,
            clusters = gridDim.x / CLUSTER;
  if (threadIdx.x == 0) {
    // Both blocks write a stage, so all four consumers have to read it before
    // either block writes it again.
    for (int i = 0; i < STAGES; ++i)
      init(&s.full[i], 1), init(&s.empty[i], 2 * CLUSTER);
    fence_init();
  }
  sync_cluster();  // the barriers of the other block are initialized, too

  Ring<STAGES> ring;
  // --8<-- [start:producer]
  if (threadIdx.x < 128) {
    give_registers_back<40>();
    if (threadIdx.x == 0) {
      for (int tile = first; tile < tiles; tile += clusters) {
        const int2 place = place_of(tile, GROUP, tile_rows, tile_columns);
        const int top = (place.y * CLUSTER + rank) * BM, left = place.x * BN;
        for (int step = 0; step < steps; ++step, ring.advance()) {
          const int i = ring.stage;
          wait(&s.empty[i], ring.parity ^ 1);
          // All of B arrives here, half of it from the other block.
          arrive_and_expect(&s.full[i], sizeof s.a[0] + sizeof s.b[0]);
          copy_box(s.a[i], A, top, step * BK, &s.full[i]);
#pragma unroll
          for (int j = 0; j < BN / 64 / CLUSTER; ++j) {
            const int box = rank * (BN / 64 / CLUSTER) + j;
            copy_box_to_all(s.b[i] + box * BOX, B, step * BK, left + box * 64,
                            &s.full[i], (1 << CLUSTER) - 1);
          }
        }
      }
    }
    // --8<-- [end:producer]
  } else {
    take_registers<232>();
    // --8<-- [start:consumer]
    const int consumer = threadIdx.x / 128 - 1, t = threadIdx.x % 128;
    for (int tile = first; tile < tiles; tile += clusters) {
      const int2 place = place_of(tile, GROUP, tile_rows, tile_columns);
      float sum[BN / 2];
      int before = 0;
      for (int step = 0; step < steps; ++step, ring.advance()) {
        const int i = ring.stage;
        wait(&s.full[i], ring.parity);
        multiply_stage(sum, shared_address(s.a[i] + consumer * BOX),
                       shared_address(s.b[i]), step > 0);
        wait_for_products<1>();
        if (step > 0 && t < CLUSTER) arrive_in(&s.empty[before], t);
        before = i;
      }
      wait_for_products<0>();
      if (t < CLUSTER) arrive_in(&s.empty[before], t);
      const int top = (place.y * CLUSTER + rank) * BM + consumer * 64;
      store_boxes<BUFFERS>(sum, C, top, place.x * BN, s.c[consumer][0],
                           consumer);
    }
    if (t == 0) wait_for_reads<0>();  // before shared memory is gone
    // --8<-- [end:consumer]
  }
  // A block stays until the other block writes nothing to it any more.
  sync_cluster();
}
// --8<-- [end:kernel]
