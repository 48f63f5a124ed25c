// C = scales A B: factors in e4m3, C in bf16 or fp32. A is m x k, B lies as n x
// k: both run along the depth. k is a multiple of 16, n of 8.
//
//   Shared       the shared memory of a block
//   Work         what a launch computes
//   fp8_product  the kernel
//
// requires: sm_90a
#include "fp8_sums.cuh"
#include "hopper/boxes.cuh"
#include "hopper/order.cuh"
#include "ptx/cluster.cuh"
#include "results.cuh"

// Rows of a tile; warpgroups that multiply; bytes of a box of 64 lines.
constexpr int BM = 128, CONSUMERS = 2, BOX = 64 * 128;

// BN: columns of a tile; STAGES: stages in the ring; BUFFERS: boxes of results
// for each consumer.
template <int BN, int STAGES, int BUFFERS>
struct Shared {
  unsigned char a[STAGES][BM * BK], b[STAGES][BN * BK];
  unsigned char c[CONSUMERS][BUFFERS][BOX];
  float scales[STAGES][BM];  // of the rows of A, one stage deep
  Barrier full[STAGES], empty[STAGES];
};

// Where results go, and what they are multiplied by. If each tensor has one
// scale, scale_a and scale_b point to a number each. If blocks have scales,
// those of A come as a map, [k / 128, m], and those of B as an array, [n / 128,
// k / 128], rounded up.
template <class Out>
struct Work {
  int m, n, k, group;  // group: tiles below each other in the order
  const float *scale_a, *scale_b;
  Out* C;
};

// --8<-- [start:head]
// Grid: clusters of CLUSTER blocks, as many as fit or fewer. Dynamic shared
// memory: Shared. Boxes of the maps: A 128 x 128, B BN / CLUSTER x 128, C 64 x
// 64, all swizzled by 128 bytes; scales 1 x 128.
//
//   Sums     OneLevel or TwoLevels of fp8_sums.cuh; says BN, columns of a tile
//   Out      the type of C: bf16 or float
//   STAGES   stages in the ring
//   CLUSTER  blocks that share a tile's columns of B: 1 or 2
//   BUFFERS  boxes of results for each consumer
template <class Sums, class Out, int STAGES, int CLUSTER, int BUFFERS>
__global__ void __cluster_dims__(CLUSTER)
    __launch_bounds__(128 * (1 + CONSUMERS), 1)
        fp8_product(const __grid_constant__ CUtensorMap map_a,
                    const __grid_constant__ CUtensorMap map_b,
                    const __grid_constant__ CUtensorMap map_c,
                    const __grid_constant__ CUtensorMap map_scales,
                    const Work<Out> work) {
  // --8<-- [end:head]
  constexpr int BN = Sums::BN, SHARE = BN / CLUSTER;
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& s = *reinterpret_cast<Shared<BN, STAGES, BUFFERS>*>(memory);
  const int tile_rows = (work.m + CLUSTER * BM - 1) / (CLUSTER * BM),
            tile_columns = (work.n + BN - 1) / BN,
            tiles = tile_rows * tile_columns, steps = (work.k + BK - 1) / BK;
  const int rank = CLUSTER > 1 ? rank_in_cluster() : 0;
  const int first = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
  if (threadIdx.x == 0) {
    prefetch(map_a), prefetch(map_b);
    if (sizeof(Out) == 2) prefetch(map_c);
    for (int i = 0; i < STAGES; ++i)
      init(&s.full[i], 1), init(&s.empty[i], CONSUMERS * CLUSTER);
    fence_init();
  }
  if (CLUSTER > 1)
    meet_cluster();
  else
    __syncthreads();

  Ring<STAGES> ring;
  // --8<-- [start:producer]
  if (threadIdx.x < 128) {
    give_registers_back<40>();
    if (threadIdx.x == 0) {
      for (int tile = first; tile < tiles; tile += clusters) {
        const int2 place = place_of(tile, work.group, tile_rows, tile_columns);
        const int top = (place.y * CLUSTER + rank) * BM, left = place.x * BN;
        for (int step = 0; step < steps; ++step, ring.advance()) {
          const int i = ring.stage;
          Barrier* const full = &s.full[i];
          wait(&s.empty[i], ring.parity ^ 1);
          arrive_and_expect(full, sizeof s.a[i] + sizeof s.b[i] +
                                      Sums::BLOCKS * sizeof s.scales[i]);
          copy_box(s.a[i], map_a, top, step * BK, full);
          if constexpr (Sums::BLOCKS)
            copy_box(s.scales[i], map_scales, step, top, full);
          if constexpr (CLUSTER > 1)  // each block copies a part for all
            copy_box_to_all(s.b[i] + rank * SHARE * BK, map_b,
                            left + rank * SHARE, step * BK, full,
                            (1 << CLUSTER) - 1);
          else
            copy_box(s.b[i], map_b, left, step * BK, full);
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
    const auto word = [](const void* to) {
      return kept(word_of(shared_address(to)));
    };
    const unsigned of_a = word(s.a[0] + consumer * 64 * BK),
                   of_b = word(s.b[0]), full = kept(shared_address(s.full));
    const auto await_stage = [&] {
      wait_at(full + ring.stage * sizeof(Barrier), ring.parity);
    };
    const float scale = Sums::BLOCKS ? 1.0f : *work.scale_a * *work.scale_b;
    for (int tile = first; tile < tiles; tile += clusters) {
      const auto corner = [&] {
        const int2 place = place_of(tile, work.group, tile_rows, tile_columns);
        return make_int2(place.x * BN,
                         (place.y * CLUSTER + rank) * BM + consumer * 64);
      };
      Sums sums;
      sums.begin();
      const int left = Sums::BLOCKS ? corner().x : 0;
      const float* const scales_b = work.scale_b + (size_t)(left / BK) * steps;
      const int next = left + BK < work.n ? steps : 0;
      await_stage();
      for (int step = 0; step < steps; ++step) {
        const int i = ring.stage;
        ring.advance();
        sums.add({i, of_a + i * (BM * BK / 16), of_b + i * (BN * BK / 16),
                  s.scales[i] + consumer * 64, scales_b + step, next},
                 step, release, [&] {
                   if (step + 1 < steps) await_stage();
                 });
      }
      const int2 at = corner();
      // So the corner is computed while the last products run.
      asm volatile("" ::"r"(at.x), "r"(at.y));
      sums.end(release);
      if constexpr (!Sums::BLOCKS) {  // one factor for all sums
#pragma unroll
        for (int i = 0; i < BN / 2; ++i) sums.sum[i] *= scale;
      }
      if constexpr (sizeof(Out) == 2)
        store_boxes<BUFFERS>(sums.sum, map_c, at.y, at.x, s.c[consumer][0],
                             consumer);
      else
        store_sums(sums.sum, work.C, work.n, at.y, at.x, work.m, work.n);
    }
    if (t == 0) wait_for_reads<0>();  // before shared memory is gone
    // --8<-- [end:consumer]
  }
  sync_cluster();  // the other block may still write into this one's memory
}

// Instances that are compiled by the tests:
// @instance fp8_product<OneLevel<256>,__nv_bfloat16,4,2,2>
// @instance fp8_product<TwoLevels<256,128,false>,__nv_bfloat16,4,2,2>
// @instance fp8_product<TwoLevels<256,128,true>,__nv_bfloat16,4,2,2>
// @instance fp8_product<TwoLevels<128,128,true>,__nv_bfloat16,6,2,1>
// @instance fp8_product<TwoLevels<256,128,true>,float,4,2,2>
