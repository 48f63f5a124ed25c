// Compaction before it is one launch.
//
//   compact_atomic   each warp takes places by an atomic addition: the order of
//                    the elements is lost
//   count_tiles      three launches: how many stay of each tile; then scan_sums
//   place_tiles      of scan/passes.cu; then they go to their places
#include "primitives/compaction/compact.cuh"

static_assert(!FLAGS, "what KEEP says stays, and flags are not looked at");

__shared__ int of_warp[WARPS];

// out: the elements of in[0 .. n) that stay, in any order; count[0] += how
// many.
// --8<-- [start:atomic]
extern "C" __global__ void __launch_bounds__(BLOCK)
    compact_atomic(const T* __restrict__ in, T* __restrict__ out,
                   unsigned long long* __restrict__ count, long long n) {
  const long long at = (long long)blockIdx.x * BLOCK + threadIdx.x;
  const int lane = threadIdx.x % 32;
  const T x = at < n ? in[at] : T(0);
  const bool stays = at < n && KEEP(x);
  const unsigned kept = __ballot_sync(ALL, stays);
  unsigned long long place = 0;
  if (lane == 0 && kept) place = atomicAdd(count, __popc(kept));
  place = from(place, 0) + __popc(kept & ((1u << lane) - 1));
  if (stays) out[place] = x;
}
// --8<-- [end:atomic]

// counts[t]: how many elements of tile t stay.
// --8<-- [start:counts]
extern "C" __global__ void __launch_bounds__(BLOCK)
    count_tiles(const T* __restrict__ in, int* __restrict__ counts,
                long long n) {
  Vector v[VECTORS];
  int before[VECTORS], total;
  load_rows(in, blockIdx.x, n, v);
  const int size = size_of(blockIdx.x, n);
  const int rows = count_rows(kept_bits(v, nullptr, size), before);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = rows;
  __syncthreads();
  before_warp(of_warp, total);
  if (threadIdx.x == 0) counts[blockIdx.x] = total;
}
// --8<-- [end:counts]

// places[t]: how many stay of what precedes tile t.
// --8<-- [start:place]
extern "C" __global__ void __launch_bounds__(BLOCK)
    place_tiles(const T* __restrict__ in, const int* __restrict__ places,
                T* __restrict__ out, long long* __restrict__ count,
                long long n) {
  Vector v[VECTORS];
  int before[VECTORS], total;
  load_rows(in, blockIdx.x, n, v);
  const unsigned bits = kept_bits(v, nullptr, size_of(blockIdx.x, n));
  const int rows = count_rows(bits, before);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = rows;
  __syncthreads();
  const long long in_tile = before_warp(of_warp, total);
  const long long first = (unsigned)places[blockIdx.x];
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) {
    long long place = first + in_tile + before[k];
#pragma unroll
    for (int i = 0; i < PER_VECTOR; ++i)
      if (bits >> (k * PER_VECTOR + i) & 1) out[place++] = v[k].at[i];
  }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) count[0] = first + total;
}
// --8<-- [end:place]
