// Compaction and partition in one launch: each element is read once, and those
// that stay are written once, in their order.
#include "primitives/compaction/compact.cuh"

#ifndef RESIDENT
#define RESIDENT 1  // blocks that an SM holds at least
#endif

// out: the elements of in[0 .. n) that stay; count[0]: how many. One block for
// each tile; flags: n bytes, or anything without FLAGS. Dynamic shared memory:
// a tile. state: as for scan_look_back.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    compact(const T* __restrict__ in, const unsigned char* __restrict__ flags,
            T* __restrict__ out, long long* __restrict__ count, long long n,
            Word* __restrict__ state) {
  extern __shared__ __align__(16) unsigned char memory[];
  T* staged = reinterpret_cast<T*>(memory);
  __shared__ int of_warp[WARPS];
  __shared__ Count prefix;
  __shared__ Ticket drawn;
  const int thread = threadIdx.x;
  if (thread == 0) drawn = ticket_of(draw(state), state, gridDim.x);
  __syncthreads();
  const Ticket ticket = drawn;
  Vector v[VECTORS];
  int before[VECTORS], total;
  load_rows(in, ticket.tile, n, v);
  const unsigned bits = kept_bits(v, flags + ticket.tile * (long long)TILE,
                                  size_of(ticket.tile, n));
  const int rows = count_rows(bits, before);
  if (thread % 32 == 0) of_warp[thread / 32] = rows;
  __syncthreads();
  const int in_tile = before_warp(of_warp, total);
  Word* words = state + HEADER;
  if (thread == 0) announce(words, ticket.tile, ticket.number, (Count)total);
  stage_rows(v, bits, before, in_tile, total, staged);
  if (thread < 32) {
    const Count found =
        look_back(words, ticket.tile, ticket.number, (Count)total);
    if (thread == 0) prefix = found;
  }
  __syncthreads();
  const long long found = prefix;
  if (ticket.tile == gridDim.x - 1 && thread == 0) count[0] = found + total;
  write_staged(staged, ticket.tile, n, found, total, out);
}
// --8<-- [end:kernel]
