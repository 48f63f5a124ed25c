// C = alpha op(A) op(B) + beta C: bf16 factors, sums in fp32, C in bf16 or
// fp32, for any sizes.
// @rung 120 kernel=gemm<256,4,2,2,false,false,__nv_bfloat16> block=384
// @instance gemm<256,4,1,2,false,false,__nv_bfloat16>
// @instance gemm<192,4,1,3,true,false,__nv_bfloat16>
// @instance gemm<128,6,2,2,false,true,__nv_bfloat16>
// @instance gemm<64,8,1,1,true,true,__nv_bfloat16>
// @instance gemm<256,4,2,2,true,true,float>
// @instance gemm<128,6,1,2,false,false,float>
// requires: sm_90a
#include "boxes.cuh"
#include "factors.cuh"
#include "order.cuh"
#include "results.cuh"

constexpr int BM = 128, CONSUMERS = 2;

// --8<-- [start:shared]
// Boxes of C only where the TMA stores them.
template <int BN, int STAGES, int BUFFERS>
struct Shared {
  unsigned char a[STAGES][BM * 128], b[STAGES][BN * 128];
  unsigned char c[CONSUMERS][BUFFERS][BOX];
  Barrier full[STAGES], empty[STAGES];
};
// --8<-- [end:shared]

// What a launch computes. A is m x k, or k x m for TA; B is k x n, or n x k for
// TB. Tiles are numbered with the splits outside: unit u is tile u % tiles of
// split u / tiles, which sums steps [s per_split, (s + 1) per_split) of BK.
// --8<-- [start:work]
template <class Out>
struct Work {
  int m, n, ldc;
  int group;             // tiles (of a cluster) below each other in the order
  int steps, per_split;  // of depth BK: of all, and of a split
  int splits;            // more than one: C is a workspace with m n each
  int boxes;             // whether the TMA may store C: `map_c` is one
  float alpha, beta;
  Out* C;
};
// --8<-- [end:work]

// --8<-- [start:head]
// Grid: clusters of CLUSTER blocks, as many as fit or fewer. Dynamic shared
// memory: Shared. The boxes of the maps: A BM x 64 or 64 x 64, B
// BN / CLUSTER x 64 or 64 x 64, C 64 x 64, all swizzled by 128 bytes.
template <int BN, int STAGES, int CLUSTER, int BUFFERS, bool TA, bool TB,
          class Out>
__global__ void __cluster_dims__(CLUSTER)
    __launch_bounds__(128 * (1 + CONSUMERS), 1)
        gemm(const __grid_constant__ CUtensorMap map_a,
             const __grid_constant__ CUtensorMap map_b,
             const __grid_constant__ CUtensorMap map_c, const Work<Out> work) {
  using OfA = Factor<!TA, BM, 1>;
  using OfB = Factor<TB, BN, CLUSTER>;
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& s = *reinterpret_cast<Shared<BN, STAGES, BUFFERS>*>(memory);
  const int tile_rows = (work.m + CLUSTER * BM - 1) / (CLUSTER * BM),
            tile_columns = (work.n + BN - 1) / BN,
            tiles = tile_rows * tile_columns, units = tiles * work.splits;
  const int rank = CLUSTER > 1 ? rank_in_cluster() : 0;
  const int first = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
  if (threadIdx.x == 0) {
    prefetch(map_a), prefetch(map_b), prefetch(map_c);
    for (int i = 0; i < STAGES; ++i)
      init(&s.full[i], 1), init(&s.empty[i], CONSUMERS * CLUSTER);
    fence_init();
  }
  sync_cluster();
  // --8<-- [end:head]

  Ring<STAGES> ring;
  // --8<-- [start:producer]
  if (threadIdx.x < 128) {
    give_registers_back<40>();
    if (threadIdx.x == 0) {
      for (int unit = first; unit < units; unit += clusters) {
        const int2 place =
            place_of(unit % tiles, work.group, tile_rows, tile_columns);
        const int top = (place.y * CLUSTER + rank) * BM, left = place.x * BN;
        const int begin = unit / tiles * work.per_split,
                  end = min(begin + work.per_split, work.steps);
        for (int step = begin; step < end; ++step, ring.advance()) {
          Barrier* const full = &s.full[ring.stage];
          wait(&s.empty[ring.stage], ring.parity ^ 1);
          arrive_and_expect(full, OfA::BYTES + OfB::BYTES);
          OfA::copy(s.a[ring.stage], map_a, top, step * BK, full, 0);
          OfB::copy(s.b[ring.stage], map_b, left, step * BK, full, rank);
        }
      }
    }
    // --8<-- [end:producer]
  } else {
    take_registers<232>();
    const int consumer = threadIdx.x / 128 - 1, t = threadIdx.x % 128;
    // --8<-- [start:consumer]
    const auto release = [&](int stage) {
      if (CLUSTER > 1 && t < CLUSTER) arrive_in(&s.empty[stage], t);
      if (CLUSTER == 1 && t == 0) arrive(&s.empty[stage]);
    };
    for (int unit = first; unit < units; unit += clusters) {
      const int2 place =
          place_of(unit % tiles, work.group, tile_rows, tile_columns);
      const int top = (place.y * CLUSTER + rank) * BM + consumer * 64,
                left = place.x * BN;
      const int split = unit / tiles, begin = split * work.per_split,
                end = min(begin + work.per_split, work.steps);
      float sum[BN / 2];
      int before = 0;
      for (int step = begin; step < end; ++step, ring.advance()) {
        const int stage = ring.stage;
        wait(&s.full[stage], ring.parity);
        multiply_stage<!TA, TB>(sum,
                                shared_address(s.a[stage] + consumer * BOX),
                                shared_address(s.b[stage]), step > begin);
        wait_for_products<1>();
        if (step > begin) release(before);
        before = stage;
      }
      wait_for_products<0>();
      if (begin < end) release(before);
      // --8<-- [end:consumer]
      // --8<-- [start:results]
      if (begin >= end) {  // no depth: the sums are zero
#pragma unroll
        for (int i = 0; i < BN / 2; ++i) sum[i] = 0.0f;
      }
      Out* const C = work.C + (size_t)split * work.m * work.ldc;
      scale(sum, C, work.ldc, top, left, work.m, work.n, work.alpha, work.beta);
      if constexpr (sizeof(Out) == 2) {
        if (work.boxes) {
          store_boxes<BUFFERS>(sum, map_c, top, left, s.c[consumer][0],
                               consumer);
          continue;
        }
      }
      store_sums(sum, C, work.ldc, top, left, work.m, work.n);
    }
    if (t == 0) wait_for_reads<0>();
    // --8<-- [end:results]
  }
  sync_cluster();
}
