// C = A B^T in fp32, multiplied as TF32: A is m x k, B lies as n x k, both run
// along the depth. k is a multiple of 4. This is the final kernel,
// ladder/final.cu, with another instruction: a stage of 128 bytes is 32 steps
// deep instead of 64, and a box of C is 32 columns wide.
//
//   Shared        the shared memory of a block
//   Work          what a launch computes
//   tf32_product  the kernel
//
// requires: sm_90a
#include "factors.cuh"
#include "hopper/order.cuh"
#include "ptx/tf32_wgmma.cuh"
#include "results.cuh"
#include "schedule.cuh"
#include "wide_boxes.cuh"

// Rows of a block's tile; warpgroups that multiply.
constexpr int BM = 128, CONSUMERS = 2;

// BN: columns of a tile; STAGES: stages in the ring; BUFFERS: boxes of results
// for each consumer.
template <int BN, int STAGES, int BUFFERS>
struct Shared {
  unsigned char a[STAGES][BM * 128], b[STAGES][BN * 128];
  unsigned char c[CONSUMERS][BUFFERS][BOX];
  Barrier full[STAGES], empty[STAGES];
};

// The same as in work.cuh, without what only the final kernel has.
struct Work {
  int m, n, group, steps, whole, share;
  int boxes;  // whether the TMA may store C: `map_c` is one
  float *C, *parts;
  unsigned* flags;
};

// --8<-- [start:kernel]
// Grid: clusters of CLUSTER blocks, as many as fit or fewer. Dynamic shared
// memory: Shared. The boxes of the maps: A 128 x 32, B BN / CLUSTER x 32, C 64
// x 32, all swizzled by 128 bytes.
//
//   BN       columns of a tile: 64, 128, 192 or 256
//   STAGES   stages in the ring
//   CLUSTER  blocks that share a tile's columns of B: 1 or 2
//   BUFFERS  boxes of results for each consumer
template <int BN, int STAGES, int CLUSTER, int BUFFERS>
__global__ void __cluster_dims__(CLUSTER)
    __launch_bounds__(128 * (1 + CONSUMERS), 1)
        tf32_product(const __grid_constant__ CUtensorMap map_a,
                     const __grid_constant__ CUtensorMap map_b,
                     const __grid_constant__ CUtensorMap map_c,
                     const Work work) {
  using OfA = Factor<true, BM, 1>;
  using OfB = Factor<true, BN, CLUSTER>;
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& s = *reinterpret_cast<Shared<BN, STAGES, BUFFERS>*>(memory);
  const int tile_rows = (work.m + CLUSTER * BM - 1) / (CLUSTER * BM),
            tile_columns = (work.n + BN - 1) / BN;
  const int rank = CLUSTER > 1 ? rank_in_cluster() : 0;
  const int worker = blockIdx.x / CLUSTER, workers = gridDim.x / CLUSTER;
  if (threadIdx.x == 0) {
    prefetch(map_a), prefetch(map_b);
    if (work.boxes) prefetch(map_c);
    for (int i = 0; i < STAGES; ++i)
      init(&s.full[i], 1), init(&s.empty[i], CONSUMERS * CLUSTER);
    fence_init();
  }
  if (CLUSTER > 1)
    meet_cluster();
  else
    __syncthreads();
  const auto pieces = [&] {
    return Schedule(worker, workers, tile_rows * tile_columns, work.whole,
                    work.steps, work.share);
  };
  Piece piece;
  Ring<STAGES> ring;

  if (threadIdx.x < 128) {
    give_registers_back<40>();
    if (threadIdx.x == 0) {
      Schedule schedule = pieces();
      while (schedule.next(piece)) {
        const int2 place =
            place_of(piece.tile, work.group, tile_rows, tile_columns);
        const int top = (place.y * CLUSTER + rank) * BM, left = place.x * BN;
        for (int step = piece.begin; step < piece.end; ++step, ring.advance()) {
          const int i = ring.stage;
          wait(&s.empty[i], ring.parity ^ 1);
          arrive_and_expect(&s.full[i], OfA::BYTES + OfB::BYTES);
          OfA::copy(s.a[i], map_a, top, step * DEPTH, &s.full[i], 0);
          OfB::copy(s.b[i], map_b, left, step * DEPTH, &s.full[i], rank);
        }
      }
      if (CLUSTER > 1)  // stay until the other block arrives here no more
        for (int i = 0; i < STAGES; ++i, ring.advance())
          wait(&s.empty[ring.stage], ring.parity ^ 1);
    }
  } else {
    take_registers<232>();
    const int consumer = threadIdx.x / 128 - 1, t = threadIdx.x % 128;
    const auto release = [&](int stage) {
      if (CLUSTER > 1 && t < CLUSTER) arrive_in(&s.empty[stage], t);
      if (CLUSTER == 1 && t == 0) arrive(&s.empty[stage]);
    };
    Schedule schedule = pieces();
    while (schedule.next(piece)) {
      float sum[BN / 2];
      int before = 0;
      for (int step = piece.begin; step < piece.end; ++step, ring.advance()) {
        const int i = ring.stage;
        wait(&s.full[i], ring.parity);
        multiply_stage_tf32(sum, shared_address(s.a[i] + consumer * BOX),
                            shared_address(s.b[i]), step > piece.begin);
        wait_for_products<1>();
        if (step > piece.begin) release(before);
        before = i;
      }
      wait_for_products<0>();
      release(before);
      const auto slot = [&](int of) {  // of the same consumer of a worker
        return (of * CLUSTER + rank) * CONSUMERS + consumer;
      };
      if (piece.begin > 0) {
        leave_part(sum, work.parts + (size_t)slot(worker) * (64 * BN),
                   work.flags + slot(worker), consumer);
        continue;
      }
      for (int end = piece.end, of = worker + 1; end < work.steps;
           end += work.share, ++of)
        add_part(sum, work.parts + (size_t)slot(of) * (64 * BN),
                 work.flags + slot(of), consumer);
      const int2 place =
          place_of(piece.tile, work.group, tile_rows, tile_columns);
      const int top = (place.y * CLUSTER + rank) * BM + consumer * 64,
                left = place.x * BN;
      if (work.boxes)
        store_wide_boxes<BUFFERS>(sum, map_c, top, left, s.c[consumer][0],
                                  consumer);
      else
        store_sums(sum, work.C, work.n, top, left, work.m, work.n);
    }
    if (t == 0) wait_for_reads<0>();  // before shared memory is gone
  }
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance tf32_product<256,4,2,2>
// @instance tf32_product<256,4,1,2>
// @instance tf32_product<192,5,1,1>
// @instance tf32_product<128,6,2,2>
// @instance tf32_product<128,6,1,2>
// @instance tf32_product<64,8,1,2>
