// y = x W^T in bf16 on Hopper's tensor cores, with what the engine does to the
// results. One thread asks the TMA for tiles; warpgroups multiply them by
// wgmma.
//
//   linear_hopper   the kernel; hopper_ends.cuh has its ends
//   Shared          what lies in shared memory
//   Turned          turns the sums back where W was the first factor
//
// requires: sm_90a
#include "hopper/boxes.cuh"
#include "hopper/order.cuh"
#include "hopper_ends.cuh"
#include "ptx/overlap.cuh"
#include "ptx/wgmma_narrow.cuh"

constexpr int DEPTH = 64;  // depths of a stage: a line of a box

// A product of a stage is A B: A has 64 rows for each consumer, B has BN
// columns. Where rows of x are few, they are B and W is A (TURNED). Then a tile
// has few rows of x, which a block has to wait for, and many rows of W, which
// are there already.
template <int CONSUMERS, int BN, int STAGES, bool TURNED>
struct Shared {
  static constexpr int PITCH = 68;  // sums from row to row: no bank twice
  unsigned char a[STAGES][CONSUMERS * 64 * 128], b[STAGES][BN * 128];
  float sums[TURNED ? CONSUMERS * BN * PITCH : 1];
  Barrier full[STAGES], empty[STAGES];
};

// Threads that do not multiply; one of them works. Where tiles are wide they
// are a warpgroup, which can give registers back to the two warpgroups that
// multiply.
template <int BN>
constexpr int PRODUCERS = BN >= 128 ? 128 : 32;

// --8<-- [start:turn-back]
// The sums of a consumer are 64 outputs by BN rows of x. Through shared memory
// they become rows with their columns side by side, as the ends want them: each
// warp gets 16 rows and, where BN is less than 64, a part of the columns.
template <int BN>
struct Turned {
  static constexpr int GROUPS = BN / 16, PARTS = 4 / GROUPS;
  static constexpr int SIZE = BN / 2;  // sums of a thread
  static_assert(BN == 16 || BN == 32 || BN == 64, "whole warps");

  static __device__ __forceinline__ int row(int t) {
    return t / 32 % GROUPS * 16 + t % 32 / 4;
  }
  static __device__ __forceinline__ int column(int t) {
    return t / 32 / GROUPS * (64 / PARTS);
  }
  static __device__ __forceinline__ void back(float (&sum)[SIZE], float* rows,
                                              int pitch, int t, int consumer) {
    sync_consumer(consumer);  // the last tile's sums have been read
    float* const to = rows + t / 32 * 16 + t % 32 / 4;
#pragma unroll
    for (int i = 0; i < SIZE; ++i)
      to[(i / 4 * 8 + t % 4 * 2 + i % 2) * pitch + i / 2 % 2 * 8] = sum[i];
    sync_consumer(consumer);
    const float* const from = rows + row(t) * pitch + column(t) + t % 4 * 2;
#pragma unroll
    for (int i = 0; i < SIZE; i += 2) {
      const float2 two = *reinterpret_cast<const float2*>(
          from + i / 2 % 2 * 8 * pitch + i / 4 * 8);
      sum[i] = two.x, sum[i + 1] = two.y;
    }
  }
};
// --8<-- [end:turn-back]

// x is n x inputs, W outputs x inputs.
//
// CONSUMERS: warpgroups that multiply, 1 or 2.
// BN: columns of B, of which wgmma.cuh and wgmma_narrow.cuh have instructions;
//   TURNED 16, 32 or 64. From 128 on CONSUMERS is 2.
// STAGES: stages of A and B in shared memory.
// TURNED: whether W is A, and x is B.
// End: what happens to the sums: Store, Add or Gates.
//
// Grid: a block for each tile, or fewer, which compute one tile after the
// other. Dynamic shared memory: Shared. The boxes of the maps, swizzled by 128
// bytes, are CONSUMERS * 64 rows of A and BN rows of B, by 64 depths. group:
// how many tiles lie below each other in their order. early: whether the next
// kernel may begin at once, instead of when the last product is done.
//
// A result is the sum over the depth in one accumulator, 16 at a time, from the
// first to the last, whatever the tile: its bits depend on no other row.
// --8<-- [start:kernel]
template <int CONSUMERS, int BN, int STAGES, bool TURNED, class End>
__global__ void __launch_bounds__(CONSUMERS * 128 + PRODUCERS<BN>)
    linear_hopper(const __grid_constant__ CUtensorMap of_x,
                  const __grid_constant__ CUtensorMap of_w, const End end,
                  int n, int outputs, int inputs, int group, int early) {
  constexpr int SIZE = BN / 2, BM = CONSUMERS * 64;
  constexpr int ROWS = TURNED ? BN : BM, COLUMNS = TURNED ? BM : BN;
  constexpr int BYTES = (BM + BN) * 128;  // of a stage
  constexpr bool WIDE = PRODUCERS<BN> == 128;
  constexpr bool LOAD_FIRST = !WIDE || End::INDEPENDENT;
  static_assert(!WIDE || CONSUMERS == 2, "it fits the registers");
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& s = *reinterpret_cast<Shared<CONSUMERS, BN, STAGES, TURNED>*>(memory);
  const int steps = (inputs + DEPTH - 1) / DEPTH;
  const int tile_rows = (n + ROWS - 1) / ROWS,
            tile_columns = (outputs + COLUMNS - 1) / COLUMNS;
  const int tiles = tile_rows * tile_columns;
  if (early) begin_next();
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i)
      init(&s.full[i], 1), init(&s.empty[i], CONSUMERS);
    fence_init();
  }
  __syncthreads();
  Ring<STAGES> ring;
  if (threadIdx.x >= CONSUMERS * 128) {
    if (WIDE) give_registers_back<40>();
    if (threadIdx.x == CONSUMERS * 128) {
      const auto ask_for_w = [&](int stage, int left, int step) {
        arrive_and_expect(&s.full[stage], BYTES);
        copy_box(TURNED ? s.a[stage] : s.b[stage], of_w, left, step * DEPTH,
                 &s.full[stage]);
      };
      // The weights of the first steps are copied before the kernel before has
      // ended.
      const int ahead = min(STAGES, steps);
      const int2 first = place_of(blockIdx.x, group, tile_rows, tile_columns);
      for (int step = 0; step < ahead; ++step)
        ask_for_w(step, first.x * COLUMNS, step);
      wait_for_previous();
      int asked = 0;
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int2 at = place_of(tile, group, tile_rows, tile_columns);
        for (int step = 0; step < steps; ++step, ring.advance()) {
          const int stage = ring.stage;
          if (asked++ >= ahead) {
            wait(&s.empty[stage], ring.parity ^ 1);
            ask_for_w(stage, at.x * COLUMNS, step);
          }
          copy_box(TURNED ? s.b[stage] : s.a[stage], of_x, at.y * ROWS,
                   step * DEPTH, &s.full[stage]);
        }
      }
    }
    wait_for_previous();
    return;
  }
  if (WIDE) take_registers<232>();
  const int consumer = threadIdx.x / 128, t = threadIdx.x % 128;
  wait_for_previous();
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int2 at = place_of(tile, group, tile_rows, tile_columns);
    int row = at.y * ROWS, left = at.x * COLUMNS;
    if constexpr (TURNED)
      row += Turned<BN>::row(t), left += consumer * 64 + Turned<BN>::column(t);
    else
      row += consumer * 64 + t / 32 * 16 + t % 32 / 4;
    typename End::template Kept<SIZE> kept[2];
    if (LOAD_FIRST)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        end.load(kept[half], row + 8 * half, left, n, outputs);
    float sum[SIZE];
    int before = 0;
    for (int step = 0; step < steps; ++step, ring.advance()) {
      const int stage = ring.stage;
      wait(&s.full[stage], ring.parity);
      const Descriptor a(shared_address(s.a[stage] + consumer * 64 * 128)),
          b(shared_address(s.b[stage]));
      fence_sums();
#pragma unroll
      for (int i = 0; i < DEPTH / 16; ++i)
        wgmma<true, true>(sum, a.at(i * 32), b.at(i * 32), step + i > 0);
      close_products();
      wait_for_products<1>();
      if (step > 0 && t == 0) arrive(&s.empty[before]);
      before = stage;
    }
    wait_for_products<0>();
    if (t == 0) arrive(&s.empty[before]);
    if (!early && tile + gridDim.x >= tiles) begin_next();
    if constexpr (TURNED)
      Turned<BN>::back(sum, s.sums + consumer * BN * s.PITCH, s.PITCH, t,
                       consumer);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (!LOAD_FIRST) end.load(kept[half], row + 8 * half, left, n, outputs);
      end.finish(sum, kept[half], half, row + 8 * half, left, n, outputs);
    }
  }
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance linear_hopper<1, 16, 9, true, Add>
// @instance linear_hopper<1, 32, 16, false, Add>
// @instance linear_hopper<1, 96, 9, false, Gates>
// @instance linear_hopper<2, 256, 4, false, Gates>
// @instance linear_hopper<2, 192, 4, false, Add>
// @instance linear_hopper<2, 128, 6, false, Store>
