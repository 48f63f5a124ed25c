// Products of many sizes in one launch: C = A B for each group, with bf16
// factors and results, and sums in fp32. A is m x k, row-major; B lies as n x
// k; n and k are multiples of 8.
//
//   Tile, Shared, hand_out  what consumers need to know of a tile
//   store_rows              results, from sums to C
//   grouped                 the kernel
//
// requires: sm_90a
#include "factors.cuh"
#include "groups.cuh"
#include "hopper/boxes.cuh"
#include "hopper/handover.cuh"
#include "hopper/order.cuh"

// --8<-- [start:shared]
// A tile as the consumers need to know it.
struct Tile {
  __nv_bfloat16* C;   // its corner
  int rows, columns;  // of the group from there on
  int pitch;          // elements from a row of C to the next
  int steps;          // 0: there are no more tiles
};

// BN: columns of a tile; STAGES: stages in the ring.
template <int BN, int STAGES>
struct Shared {
  unsigned char a[STAGES][BM * 128], b[STAGES][BN * 128];
  unsigned char c[CONSUMERS][2][BOX];
  Barrier full[STAGES], empty[STAGES];
  Slot<Tile> tile[CONSUMERS];  // the next tile, for each consumer
  int first[THREADS + 1];      // the first tile of each group; how many in all
  int of_warp[THREADS / 32];   // used by count_tiles
};

// Hand a tile to all consumers.
__device__ __forceinline__ void hand_out(Slot<Tile>* slots, const Tile& tile,
                                         int& parity) {
  for (int i = 0; i < CONSUMERS; ++i) hand_over(slots[i], tile, parity);
  parity ^= 1;
}
// --8<-- [end:shared]

// --8<-- [start:store]
// Store 64 rows of sums (SIZE of a thread), or as many as the group has, by way
// of shared memory, so that eight lanes write 128 bytes of a row. Rows of the
// next group stay as they are. `turn`: which of the two boxes is next. That box
// is free: all threads have read it before they came to the barrier of the
// other box.
template <int SIZE>
__device__ __forceinline__ void store_rows(const float (&sum)[SIZE],
                                           const Tile& tile,
                                           unsigned char (*boxes)[BOX],
                                           int& turn, int consumer) {
  const int t = threadIdx.x % 128;
#pragma unroll
  for (int which = 0; which < SIZE / 32; ++which, turn ^= 1) {
    unsigned char* const box = boxes[turn];
    write_box(sum, which, shared_address(box));
    sync_consumer(consumer);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int line = i * 16 + t / 8, piece = t % 8;
      const int row = consumer * 64 + line, column = which * 64 + piece * 8;
      if (row < tile.rows && column < tile.columns)
        *reinterpret_cast<uint4*>(tile.C + (size_t)row * tile.pitch + column) =
            *reinterpret_cast<const uint4*>(box + line * 128 +
                                            (piece ^ line % 8) * 16);
    }
  }
}
// --8<-- [end:store]

// Grid: as many blocks as fit or fewer. Dynamic shared memory: Shared. Boxes of
// the maps: A 64 x 64, B BN x 64, both swizzled by 128 bytes. BN: columns of a
// tile, 64, 128 or 256; STAGES: stages in the ring.
template <int BN, int STAGES>
__global__ void __launch_bounds__(THREADS, 1) grouped(const Work work) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& s = *reinterpret_cast<Shared<BN, STAGES>*>(memory);
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i)
      init(&s.full[i], 1), init(&s.empty[i], CONSUMERS);
    for (int i = 0; i < CONSUMERS; ++i) init(s.tile[i]);
    fence_init();
  }
  count_tiles<BN>(work, s.first, s.of_warp);
  Ring<STAGES> ring;
  int parity = 0;  // of the next tile in its slot
  // --8<-- [start:producer]
  if (threadIdx.x < 128) {
    give_registers_back<40>();
    if (threadIdx.x > 0) return;
    const int tiles = s.first[work.count];
    for (int tile = blockIdx.x, next; tile < tiles; tile = next) {
      const int g = group_of(tile, s.first, work.count);
      const Group group = work.groups[g];
      const int2 rows = rows_of(work, g);
      const int2 place =
          place_of(tile - s.first[g], work.order, (rows.y + BM - 1) / BM,
                   (group.n + BN - 1) / BN);
      const int top = place.y * BM, left = place.x * BN;
      const int steps = (group.k + BK - 1) / BK, row = rows.x + top;
      const bool both = rows.y - top > 64;     // if not, consumer 1 has no rows
      const int ask = max(steps - STAGES, 0);  // late, so tiles begin in order
      next = tile + gridDim.x;
      const CUtensorMap* const map = work.maps + group.map;
      for (int step = 0; step < steps; ++step, ring.advance()) {
        const int i = ring.stage, depth = step * BK;
        wait(&s.empty[i], ring.parity ^ 1);
        arrive_and_expect(&s.full[i], (both ? 2 : 1) * BOX + BN * 128);
        copy_box(s.a[i], map[0], row, depth, &s.full[i]);
        if (both) copy_box(s.a[i] + BOX, map[0], row + 64, depth, &s.full[i]);
        copy_box(s.b[i], map[1], group.row_b + left, depth, &s.full[i]);
        // After `tiles` increments the counter is 0 again.
        if (step == ask && work.taken)
          next = gridDim.x + atomicInc(work.taken, tiles - 1);
        if (step == 0)
          hand_out(s.tile,
                   {group.C + (size_t)row * group.n + left, rows.y - top,
                    group.n - left, group.n, steps},
                   parity);
      }
    }
    hand_out(s.tile, {}, parity);
    // --8<-- [end:producer]
  } else {
    // --8<-- [start:consumer]
    take_registers<232>();
    const int consumer = threadIdx.x / 128 - 1, t = threadIdx.x % 128;
    int turn = 0;
    while (true) {
      const Tile tile = receive(s.tile[consumer], parity);
      if (tile.steps == 0) break;
      parity ^= 1;
      if (tile.rows <= consumer * 64) {  // no rows: it only gives stages back
        for (int step = 0; step < tile.steps; ++step, ring.advance())
          if (t == 0) {  // other threads go on, and wait for the next tile
            wait(&s.full[ring.stage], ring.parity);
            arrive(&s.empty[ring.stage]);
          }
        continue;
      }
      float sum[BN / 2];
      int before = 0;
      for (int step = 0; step < tile.steps; ++step, ring.advance()) {
        const int i = ring.stage;
        wait(&s.full[i], ring.parity);
        multiply_stage<true, true>(sum, shared_address(s.a[i] + consumer * BOX),
                                   shared_address(s.b[i]), step > 0);
        wait_for_products<1>();
        if (step > 0 && t == 0) arrive(&s.empty[before]);
        before = i;
      }
      wait_for_products<0>();
      if (t == 0) arrive(&s.empty[before]);
      store_rows(sum, tile, s.c[consumer], turn, consumer);
    }
    // --8<-- [end:consumer]
  }
}

// Instances that are compiled by the tests:
// @instance grouped<256,4>
// @instance grouped<128,6>
// @instance grouped<64,8>
