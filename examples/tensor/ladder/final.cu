// C = alpha op(A) op(B) + beta C: sums in fp32; factors in bf16 and C in bf16
// or fp32, or all three in fp16; any sizes. Its parts are in tensor/gemm/:
//
//   work.cuh      what a launch computes, and the shared memory of a block
//   schedule.cuh  which pieces of the product a block computes
//   factors.cuh   from factors in memory to products
//   epilogue.cuh  from sums to results
//   halves.cuh    the last steps of a tile by halves
//   turns.cuh     the consumers' turns in the last tile
//
// @rung 120 kernel=gemm<256,4,2,2,false,false,__nv_bfloat16> block=384 launch=gemm
// expect: spills (a few words between tiles of the instances for float, GeluErf)
// requires: sm_90a
#include "hopper/order.cuh"
#include "tensor/gemm/halves.cuh"
#include "tensor/gemm/schedule.cuh"
#include "tensor/gemm/turns.cuh"
#include "tensor/gemm/work.cuh"

// Grid: clusters of CLUSTER blocks, as many as fit or fewer. Dynamic shared
// memory: Shared. The boxes of the maps: A BM x 64, or 64 x 64 for TA; B
// 64 x 64, or BN / CLUSTER x 64 for TB; C 64 x 64; all swizzled by 128 bytes.
//
//   BN       columns of a tile: 64, 128, 192 or 256
//   STAGES   stages in the ring, at least 2
//   CLUSTER  blocks that share a tile's columns of B: 1 or 2
//   BUFFERS  boxes of results for each consumer
//   TA, TB   whether op transposes A, and B
//   Out      the type of C: bf16, float, or __half, and then of the factors,
//            too
//   PLAIN    whether rows of A and B may begin anywhere, for CLUSTER = 1 and BN
//            = 64; without the TMA each step takes longer, but nothing has to
//            be copied before
//   End      the epilogue: Linear, Bare or Fused of epilogue.cuh, or ByHalves
//            of halves.cuh, which asks for BN = 256, CLUSTER = 2 and no TA
// --8<-- [start:head]
template <int BN, int STAGES, int CLUSTER, int BUFFERS, bool TA, bool TB,
          class Out, bool PLAIN = false, class End = Linear>
__global__ void __cluster_dims__(CLUSTER)
    __launch_bounds__(128 * (1 + CONSUMERS), 1)
        gemm(const __grid_constant__ CUtensorMap map_a,
             const __grid_constant__ CUtensorMap map_b,
             const __grid_constant__ CUtensorMap map_c, const Work<Out> work) {
  using In = typename FactorsOf<Out>::Type;
  using OfA = Factor<!TA, BM, 1>;
  using OfB = Factor<TB, BN, CLUSTER>;
  static_assert(STAGES > 1, "a stage is free only when the next has come");
  static_assert(!PLAIN || (CLUSTER == 1 && BN == 64), "it fits the registers");
  constexpr bool LARGEST = BN == 256 && CLUSTER == 2;  // of the tiles
  static_assert(!HALVED<End> || (LARGEST && !TA), "it fits the registers");
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& s = *reinterpret_cast<Shared<BN, STAGES, BUFFERS>*>(memory);
  if (threadIdx.x == 0) {
    if (!PLAIN) prefetch(map_a), prefetch(map_b);
    if (End::BARE || work.boxes) prefetch(map_c);
  } else if (threadIdx.x == 32) {
    for (int i = 0; i < STAGES; ++i)
      init(&s.full[i], PLAIN ? 128 : 1), init(&s.empty[i], CONSUMERS * CLUSTER);
    for (int i = 0; End::FUSED && i < CONSUMERS * BUFFERS; ++i)
      init(&s.loaded[0][i], 1);
    fence_init();
  }
  const int tile_rows = (work.m + CLUSTER * BM - 1) / (CLUSTER * BM),
            tile_columns = (work.n + BN - 1) / BN,
            tiles = tile_rows * tile_columns;
  const int rank = CLUSTER > 1 ? rank_in_cluster() : 0;
  Schedule schedule(blockIdx.x / CLUSTER, gridDim.x / CLUSTER, tiles,
                    End::BARE ? tiles : work.whole, work.steps,
                    End::BARE ? 0 : work.share);
  Piece piece;
  int top, left;  // where its rows and columns begin in C
  const auto next = [&] {
    if (!schedule.next(piece)) return false;
    const int2 place =
        place_of(piece.tile, work.group, tile_rows, tile_columns);
    top = (place.y * CLUSTER + rank) * BM, left = place.x * BN;
    return true;
  };
  // The two divisions in `place_of` take as long as setting up the barriers.
  // Warp 0, which asks for the first stage, divides before all threads meet;
  // the consumers divide while they wait for that stage.
  bool more = threadIdx.x < 128 && next();
  if (CLUSTER > 1)
    meet_cluster();
  else
    __syncthreads();
  Ring<STAGES> ring;
  // --8<-- [end:head]

  // --8<-- [start:producer]
  if (PLAIN && threadIdx.x < 128) {
    PlainFactor<!TA, BM> a{work.A, TA ? work.k : work.m, TA ? work.m : work.k};
    PlainFactor<TB, BN> b{work.B, TB ? work.n : work.k, TB ? work.k : work.n};
    for (; more; more = next()) {
      for (int step = piece.begin; step < piece.end; ++step, ring.advance()) {
        a.load(top, step * BK), b.load(left, step * BK);
        wait(&s.empty[ring.stage], ring.parity ^ 1);
        a.store(s.a[ring.stage], top, step * BK);
        b.store(s.b[ring.stage], left, step * BK);
        fence_for_tma();  // wgmma reads shared memory on the TMA's side, too
        arrive(&s.full[ring.stage]);
      }
    }
  } else if (threadIdx.x < 128) {
    give_registers_back<40>();
    if (threadIdx.x == 0) {
      for (; more; more = next()) {
#pragma unroll 1  // the code of four steps would have to be fetched first
        for (int step = piece.begin; step < piece.end; ++step, ring.advance()) {
          Barrier* const full = &s.full[ring.stage];
          wait(&s.empty[ring.stage], ring.parity ^ 1);
          arrive_and_expect(full, OfA::BYTES + OfB::BYTES);
          OfA::copy(s.a[ring.stage], map_a, top, step * BK, full, 0);
          OfB::copy(s.b[ring.stage], map_b, left, step * BK, full, rank);
        }
      }
      // A block stays until all consumers have given its stages back: then the
      // other block of the cluster arrives at its barriers no more.
      if (CLUSTER > 1)
        for (int i = 0; i < STAGES; ++i, ring.advance())
          wait(&s.empty[ring.stage], ring.parity ^ 1);
    }
    // --8<-- [end:producer]
  } else {
    // --8<-- [start:consumer]
    if (!PLAIN) take_registers<232>();
    const int consumer = threadIdx.x / 128 - 1, t = threadIdx.x % 128;
    const auto release = [&](int stage) {
      if (CLUSTER > 1 && t < CLUSTER) arrive_in(&s.empty[stage], t);
      if (CLUSTER == 1 && t == 0) arrive(&s.empty[stage]);
    };
    int phase = 0;
    while (next()) {
      float sum[BN / 2];
      int before = 0;
      const int middle = piece.end - HALVED<End>;
#pragma unroll 1
      for (int step = piece.begin; step < middle; ++step, ring.advance()) {
        const int stage = ring.stage;
        wait(&s.full[stage], ring.parity);
        // In the last tile the second consumer begins its last steps when the
        // first one has begun all of its steps. So the first consumer stores
        // while products of the second run.
        const bool last = End::BARE && !HALVED<End> && LARGEST &&
                          schedule.tile >= schedule.whole;
        if (last && consumer == 1 &&
            step == max(piece.end - (STAGES - 1), piece.begin))
          wait_for_other_consumer();
        multiply_stage<!TA, TB, In>(
            sum, shared_address(s.a[stage] + consumer * BOX),
            shared_address(s.b[stage]), step > piece.begin);
        if constexpr (End::FUSED)  // while the products run
          if (step == 0 && t == 0 && work.extra.map)
            End::template fetch<BUFFERS>(work, top + consumer * 64, left,
                                         s.c[consumer][0], s.loaded[consumer]);
        if (last && consumer == 0 && step + 1 == piece.end)
          let_other_consumer();
        wait_for_products<1>();
        if (step > piece.begin) release(before);
        before = stage;
      }
      if constexpr (HALVED<End> > 0) {
        finish_by_halves<HALVED<End>, !TA, TB, Out, In>(
            sum, s, ring, before, map_c, top, left, consumer, release);
        continue;
      }
      Bias<BN / 2> bias;
      if constexpr (End::FUSED) bias.template load<true>(work, left);
      wait_for_products<0>();
      // --8<-- [end:consumer]
      // --8<-- [start:results]
      release(before);
      const int row = top + consumer * 64;
      if constexpr (!End::BARE) {
        const auto slot = [&](int of) {  // of the same consumer of a worker
          return (of * CLUSTER + rank) * CONSUMERS + consumer;
        };
        const int worker = blockIdx.x / CLUSTER;
        if (piece.begin > 0) {
          leave_part(sum, work.parts + (size_t)slot(worker) * (64 * BN),
                     work.flags + slot(worker), consumer);
          continue;
        }
        for (int end = piece.end, of = worker + 1; end < work.steps;
             end += work.share, ++of)
          add_part(sum, work.parts + (size_t)slot(of) * (64 * BN),
                   work.flags + slot(of), consumer);
      }
      if constexpr (End::FUSED) {
        End::template finish<BUFFERS>(sum, bias, work, map_c, row, left,
                                      s.c[consumer][0], s.loaded[consumer],
                                      phase, consumer);
        continue;
      }
      if constexpr (!End::BARE)
        scale(sum, work.C, work.ldc, row, left, work.m, work.n, work.alpha,
              work.beta);
      if constexpr (sizeof(Out) == 2) {
        if (End::BARE || work.boxes)
          store_boxes<BUFFERS, Out>(sum, map_c, row, left, s.c[consumer][0],
                                    consumer);
        else
          store_lines(sum, work.C, work.ldc, row, left, work.m, work.n,
                      s.c[consumer][0]);
      } else {
        store_sums(sum, work.C, work.ldc, row, left, work.m, work.n);
      }
    }
    if (t == 0) wait_for_reads<0>();
    // --8<-- [end:results]
  }
}

// Instances that are compiled by the tests:
// @instance gemm<256,4,2,2,false,false,__nv_bfloat16,false,Bare>
// @instance gemm<256,4,2,2,false,false,__nv_bfloat16,false,ByHalves>
// @instance gemm<256,4,1,2,false,false,__nv_bfloat16>
// @instance gemm<192,4,1,3,true,false,__nv_bfloat16>
// @instance gemm<128,6,2,2,false,true,__nv_bfloat16>
// @instance gemm<64,8,1,1,true,true,__nv_bfloat16>
// @instance gemm<256,4,2,2,true,true,float>
// @instance gemm<256,4,2,2,false,false,__half>
// @instance gemm<64,8,1,1,true,false,__half,true>
// @instance gemm<128,6,1,2,false,false,float>
// @instance gemm<64,8,1,1,false,false,__nv_bfloat16,true>
// @instance gemm<64,8,1,1,true,true,float,true>
// @instance gemm<256,4,2,2,false,false,__nv_bfloat16,false,Fused<GeluTanh>>
// @instance gemm<256,4,1,2,false,false,__nv_bfloat16,false,Fused<GeluErf>>
// @instance gemm<192,4,1,3,false,true,__nv_bfloat16,false,Fused<Relu>>
// @instance gemm<128,6,2,2,true,false,float,false,Fused<None>>
// @instance gemm<64,8,1,1,false,false,__nv_bfloat16,true,Fused<GeluErf>>
