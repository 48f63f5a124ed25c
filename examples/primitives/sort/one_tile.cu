// Radix sort of few keys: one block, one launch.
#include "radix.cuh"

// --8<-- [start:tile]
// All passes, for n <= TILE keys: they stay in the block, and each pass takes
// them from the shared memory in which the pass before has put them in order.
extern "C" __global__ void __launch_bounds__(THREADS)
    sort_tile(const Key* __restrict__ keys, Key* __restrict__ keys_out,
              const Value* __restrict__ values, Value* __restrict__ values_out,
              unsigned n) {
  extern __shared__ __align__(16) unsigned char memory[];
  Key* const staged = reinterpret_cast<Key*>(memory);
  unsigned* const counters = reinterpret_cast<unsigned*>(staged + TILE);
  Key key[ITEMS];
  load_tile(keys, n, LAST, key);
#if PAIRS
  Value* const staged_values = counters + COUNTERS;
  Value value[ITEMS];
  load_tile(values, n, 0u, value);
#endif
  for (int shift = 0; shift < KEY_BITS; shift += 8) {
    clear_counters(counters);
    __syncthreads();
    rank_tile(
        key, shift, n, counters, [](unsigned) {},
        [&](int i, unsigned r) {
          staged[r] = key[i];
#if PAIRS
          staged_values[r] = value[i];
#endif
        });
    __syncthreads();
    load_tile(staged, TILE, LAST, key);
#if PAIRS
    load_tile(staged_values, TILE, 0u, value);
#endif
  }
  const unsigned mine = threadIdx.x / 32 * (32 * ITEMS) + threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i)
    if (mine + 32 * i < n) {
      keys_out[mine + 32 * i] = key[i];
#if PAIRS
      values_out[mine + 32 * i] = value[i];
#endif
    }
}
// --8<-- [end:tile]
