// One launch of as many blocks as run at the same time. While a block waits for
// what precedes its tile, the copy engine already brings its next tiles.
// requires: sm_90
#include "primitives/scan/look_back.cuh"
#include "ptx/bulk.cuh"

#ifndef RESIDENT
#define RESIDENT 1  // blocks that an SM holds at least
#endif
#ifndef BUFFERS
#define BUFFERS 3  // tiles of a block in shared memory or on their way
#endif
#ifndef TICKETS
#define TICKETS 1  // 0: a block has every gridDim.x-th tile
#endif
#ifndef IN_ORDER
#define IN_ORDER 0  // 1: always added in the same order
#endif

// out: sums of in[0 .. n), which is aligned to 16 bytes. Dynamic shared memory:
// BUFFERS tiles. state: as for scan_look_back, or scan_in_order.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    scan_bulk(const T* __restrict__ in, T* __restrict__ out, long long n,
              Word* __restrict__ state, int tiles) {
  extern __shared__ __align__(128) unsigned char memory[];
  Vector* stages = reinterpret_cast<Vector*>(memory);
  __shared__ Barrier full[BUFFERS];
  __shared__ Ticket tickets[BUFFERS];
  __shared__ T of_warp[2][WARPS], prefix;
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
    T before[VECTORS], sum;
    if ((ticket.tile + 1LL) * TILE <= n) {
      wait(full + ring.stage, ring.parity);
      const Vector* rows = stages + ring.stage * (TILE / PER_VECTOR) +
                           thread / 32 * (32 * VECTORS) + lane;
#pragma unroll
      for (int k = 0; k < VECTORS; ++k) v[k] = rows[k * 32];
    } else {
      load_rows(in, ticket.tile, n, v);
    }
    const T rows = scan_rows(v, before);
    if (lane == 0) of_warp[0][thread / 32] = rows;
    __syncthreads();  // besides, all have read the stage and the ticket
    const T in_tile = before_warp(of_warp[0], sum);
    if (thread == 0) announce(state + HEADER, ticket.tile, ticket.number, sum);
    if (thread == DRAWER) bring(ring.stage);
    T found;
    if (IN_ORDER) {
      found = in_order(state + HEADER, ticket.tile, tiles, ticket.number, sum,
                       of_warp[1], &prefix);
    } else {
      if (thread < 32) {
        found = look_back(state + HEADER, ticket.tile, ticket.number, sum);
        if (lane == 0) prefix = found;
      }
      __syncthreads();
      found = prefix;
    }
    finish_rows(v, before, found + in_tile);
    store_rows(out, ticket.tile, n, v);
    // It has waited for all: each block knows the number of this launch.
    if (!TICKETS && ticket.tile == tiles - 1 && thread == DRAWER)
      *state = (drawn >> 32) + 1 << 32;
  }
}
// --8<-- [end:kernel]
