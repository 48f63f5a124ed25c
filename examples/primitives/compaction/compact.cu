// Compaction and partition in one launch: each element is read once, and those
// that stay are written once, in their order.
#include "primitives/compaction/compact.cuh"

#ifndef STAGED
#define STAGED 1  // 0: each thread stores its own elements
#endif
#ifndef IN_ORDER
#define IN_ORDER 0  // 1: prefixes by groups of tiles
#endif
#ifndef AT_ONCE
#define AT_ONCE 0  // 1: at most GROUP tiles, which all run at the same time
#endif
#ifndef RESIDENT
#define RESIDENT 1  // blocks that an SM holds at least
#endif

// out: the elements of in[0 .. n) that stay; count[0]: how many. One block for
// each tile; flags: n bytes, or anything without FLAGS. Dynamic shared memory:
// with STAGED, a tile. state: as for scan_look_back, or scan_in_order.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    compact(const T* __restrict__ in, const unsigned char* __restrict__ flags,
            T* __restrict__ out, long long* __restrict__ count, long long n,
            Word* __restrict__ state) {
  extern __shared__ __align__(16) unsigned char memory[];
  T* staged = reinterpret_cast<T*>(memory);
  __shared__ int of_warp[WARPS];
  __shared__ Count of_counts[WARPS], prefix;
  __shared__ Ticket drawn;
  const int thread = threadIdx.x;
  Ticket ticket = {(int)blockIdx.x, 0};
  if (!AT_ONCE) {
    if (thread == 0) drawn = ticket_of(draw(state), state, gridDim.x);
    __syncthreads();
    ticket = drawn;
  }
  Vector v[VECTORS];
  int before[VECTORS], total;
  load_rows(in, ticket.tile, n, v);
  const Word counter = AT_ONCE ? __ldcg(state) : 0;
  if (AT_ONCE) ticket.number = number_of(counter);
  const unsigned bits = kept_bits(v, flags, ticket.tile, n);
  const int rows = count_rows(bits, before);
  if (thread % 32 == 0) of_warp[thread / 32] = rows;
  __syncthreads();
  const int in_tile = before_warp(of_warp, total);
  Word* words = state + HEADER;
  if (thread == 0) announce(words, ticket.tile, ticket.number, (Count)total);
  if (STAGED) stage_rows(v, bits, before, in_tile, total, staged);
  Count found;
  if (IN_ORDER || AT_ONCE) {
    found = in_order(words, ticket.tile, gridDim.x, ticket.number, (Count)total,
                     of_counts, &prefix);
  } else {
    if (thread < 32) {
      found = look_back(words, ticket.tile, ticket.number, (Count)total);
      if (thread == 0) prefix = found;
    }
    __syncthreads();
    found = prefix;
  }
  if (ticket.tile == gridDim.x - 1 && thread == 0) {
    count[0] = (long long)found + total;
    if (AT_ONCE) *state = (counter >> 32) + 1 << 32;
  }
  if (STAGED) {
    write_staged(staged, ticket.tile, n, (long long)found, total, out);
    return;
  }
  const long long first = first_of(ticket.tile);
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) {
    long long place = (long long)found + in_tile + before[k];
#pragma unroll
    for (int i = 0; i < PER_VECTOR; ++i) {
      const long long at = first + k * ROW + i;
      if (bits >> (k * PER_VECTOR + i) & 1)
        out[place++] = v[k].at[i];
      else if (PARTITION && at < n)
        out[n - 1 - (at - place)] = v[k].at[i];
    }
  }
}
// --8<-- [end:kernel]
