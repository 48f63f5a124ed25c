// One launch, which reads each element once and writes each sum once. A block
// draws the number of its tile, so that the tiles before it have begun.
//
//   scan_look_back   what precedes a tile, by windows
//   scan_in_order    by groups, always added in the same order
//   scan_at_once     for as few tiles as run at the same time: no tickets
#include "primitives/scan/look_back.cuh"

#ifndef RESIDENT
#define RESIDENT 1  // blocks that an SM holds at least
#endif
#ifndef DRAWN
#define DRAWN 1  // 0: an attempt in which the tile is blockIdx.x
#endif

__shared__ T of_warp[2][WARPS];
__shared__ T prefix;

// Thread 0 draws, and all learn it.
__device__ __forceinline__ Ticket drawn_by_block(Word* state, unsigned draws) {
  __shared__ Ticket ticket;
  if (threadIdx.x == 0) {
    ticket = ticket_of(draw(state), state, draws);
    if (!DRAWN) ticket.tile = blockIdx.x;
  }
  __syncthreads();
  return ticket;
}

// out: sums of in[0 .. n). One block for each of the tiles. state: HEADER
// words, and WORDS for each tile; 0 before the first launch. Launches that may
// overlap need a state of their own.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    scan_look_back(const T* __restrict__ in, T* __restrict__ out, long long n,
                   Word* __restrict__ state) {
  Vector v[VECTORS];
  T before[VECTORS], sum;
  if (!DRAWN) load_rows(in, blockIdx.x, n, v);
  const Ticket ticket = drawn_by_block(state, gridDim.x);
  if (DRAWN) load_rows(in, ticket.tile, n, v);
  const T rows = scan_rows(v, before);
  if (threadIdx.x % 32 == 0) of_warp[0][threadIdx.x / 32] = rows;
  __syncthreads();
  const T in_tile = before_warp(of_warp[0], sum);
  if (threadIdx.x == 0)
    announce(state + HEADER, ticket.tile, ticket.number, sum);
  if (threadIdx.x < 32) {
    const T found = look_back(state + HEADER, ticket.tile, ticket.number, sum);
    if (threadIdx.x == 0) prefix = found;
  }
  __syncthreads();
  finish_rows(v, before, prefix + in_tile);
  store_rows(out, ticket.tile, n, v);
}
// --8<-- [end:kernel]

// The same. state: besides, COPIES lines of 16 words for each group.
// --8<-- [start:in-order]
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    scan_in_order(const T* __restrict__ in, T* __restrict__ out, long long n,
                  Word* __restrict__ state) {
  Vector v[VECTORS];
  T before[VECTORS], sum;
  if (!DRAWN) load_rows(in, blockIdx.x, n, v);
  const Ticket ticket = drawn_by_block(state, gridDim.x);
  if (DRAWN) load_rows(in, ticket.tile, n, v);
  const T rows = scan_rows(v, before);
  if (threadIdx.x % 32 == 0) of_warp[0][threadIdx.x / 32] = rows;
  __syncthreads();
  const T in_tile = before_warp(of_warp[0], sum);
  if (threadIdx.x == 0)
    announce(state + HEADER, ticket.tile, ticket.number, sum);
  const T found = in_order(state + HEADER, ticket.tile, gridDim.x,
                           ticket.number, sum, of_warp[1], &prefix);
  finish_rows(v, before, found + in_tile);
  store_rows(out, ticket.tile, n, v);
}
// --8<-- [end:in-order]

// For at most GROUP tiles, whose blocks the GPU can hold at the same time: none
// needs the place of another, so that all begin, and nobody draws. The last
// tile has seen a word of each other one: all know the launch's number.
// --8<-- [start:at-once]
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    scan_at_once(const T* __restrict__ in, T* __restrict__ out, long long n,
                 Word* __restrict__ state) {
  const int tile = blockIdx.x;
  Vector v[VECTORS];
  T before[VECTORS], sum;
  load_rows(in, tile, n, v);
  const Word counter = gridDim.x > 1 ? __ldcg(state) : 0;
  const T rows = scan_rows(v, before);
  if (threadIdx.x % 32 == 0) of_warp[0][threadIdx.x / 32] = rows;
  __syncthreads();
  T found = before_warp(of_warp[0], sum);
  if (gridDim.x > 1) {
    const unsigned number = number_of(counter);
    if (threadIdx.x == 0) announce(state + HEADER, tile, number, sum);
    found = in_order(state + HEADER, tile, gridDim.x, number, sum, of_warp[1],
                     &prefix) +
            found;
    if (tile == gridDim.x - 1 && threadIdx.x == 0)
      *state = ((counter >> 32) + 1) << 32;
  }
  finish_rows(v, before, found);
  store_rows(out, tile, n, v);
}
// --8<-- [end:at-once]
