// Compaction and partition by as many blocks as run at the same time: the copy
// engine brings the next tiles while a block waits for what precedes its own.
// requires: sm_90
#include "primitives/compaction/compact.cuh"
#include "ptx/bulk.cuh"

#ifndef IN_ORDER
#define IN_ORDER 0  // 1: prefixes by groups of tiles
#endif
#ifndef TICKETS
#define TICKETS 1  // 0: a block has every gridDim.x-th tile
#endif
#ifndef RESIDENT
#define RESIDENT 1  // blocks that an SM holds at least
#endif
#ifndef BUFFERS
#define BUFFERS 2  // tiles of a block in shared memory or on their way
#endif

// As `compact`. Dynamic shared memory: BUFFERS + 1 tiles.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    compact_bulk(const T* __restrict__ in,
                 const unsigned char* __restrict__ flags, T* __restrict__ out,
                 long long* __restrict__ count, long long n,
                 Word* __restrict__ state, int tiles) {
  extern __shared__ __align__(128) unsigned char memory[];
  Vector* stages = reinterpret_cast<Vector*>(memory);
  T* staged = reinterpret_cast<T*>(memory) + BUFFERS * TILE;
  __shared__ Barrier full[BUFFERS];
  __shared__ Ticket tickets[BUFFERS];
  __shared__ int of_warp[WARPS];
  __shared__ Count of_counts[WARPS], prefix;
  const int thread = threadIdx.x, lane = thread % 32;
  constexpr int DRAWER = 32 % BLOCK;  // not of the warp that looks back

  // Each block draws BUFFERS tickets more than it has tiles.
  Word drawn = TICKETS ? 0 : __ldcg(state) & ~0xffffffffull | blockIdx.x;
  auto draw_next = [&]() {
    if (TICKETS)
      drawn = draw(state);
    else
      drawn += gridDim.x;
  };
  auto bring = [&](int stage) {
    const Ticket next =
        TICKETS ? ticket_of(drawn, state, tiles + gridDim.x * BUFFERS)
                : Ticket{(int)(unsigned)drawn, number_of(drawn)};
    tickets[stage] = next;
    const long long first = (long long)next.tile * TILE;
    if (first + TILE > n) return;  // the last tile, if it is not full, or none
    arrive_and_expect(full + stage, TILE * sizeof(T));
    load_bytes(stages + stage * (TILE / PER_VECTOR), in + first,
               TILE * sizeof(T), full + stage);
  };
  if (thread == DRAWER) {
    for (int s = 0; s < BUFFERS; ++s) init(full + s, 1);
    fence_init();
    for (int s = 0; s < BUFFERS; ++s) {
      if (TICKETS || s) draw_next();
      bring(s);
    }
  }
  __syncthreads();

  for (Ring<BUFFERS> ring;; ring.advance()) {
    const Ticket ticket = tickets[ring.stage];
    if (ticket.tile >= tiles) break;
    if (thread == DRAWER) draw_next();  // it is on its way while we add
    Vector v[VECTORS];
    int before[VECTORS], total;
    if ((ticket.tile + 1LL) * TILE <= n) {
      wait(full + ring.stage, ring.parity);
      const Vector* rows = stages + ring.stage * (TILE / PER_VECTOR) +
                           thread / 32 * (32 * VECTORS) + lane;
#pragma unroll
      for (int k = 0; k < VECTORS; ++k) v[k] = rows[k * 32];
    } else {
      load_rows(in, ticket.tile, n, v);
    }
    const unsigned bits = kept_bits(v, flags, ticket.tile, n);
    const int rows = count_rows(bits, before);
    if (lane == 0) of_warp[thread / 32] = rows;
    __syncthreads();  // besides, all have read the stage and the ticket
    const int in_tile = before_warp(of_warp, total);
    Word* words = state + HEADER;
    if (thread == 0) announce(words, ticket.tile, ticket.number, (Count)total);
    if (thread == DRAWER) bring(ring.stage);
    stage_rows(v, bits, before, in_tile, total, staged);
    Count found;
    if (IN_ORDER) {
      found = in_order(words, ticket.tile, tiles, ticket.number, (Count)total,
                       of_counts, &prefix);
    } else {
      if (thread < 32) {
        found = look_back(words, ticket.tile, ticket.number, (Count)total);
        if (lane == 0) prefix = found;
      }
      __syncthreads();
      found = prefix;
    }
    write_staged(staged, ticket.tile, n, (long long)found, total, out);
    if (ticket.tile == tiles - 1) {  // it has waited for all
      if (thread == 0) count[0] = (long long)found + total;
      if (!TICKETS && thread == DRAWER) *state = ((drawn >> 32) + 1) << 32;
    }
  }
}
// --8<-- [end:kernel]
