// A counting sort by one digit in three launches; a radix sort calls it for one
// digit after the other, from the lowest.
//
//   count_tiles  how often each digit occurs in each tile
//   scan_tiles   where the keys of each digit and tile begin
//   scatter      moves the keys there
#include "radix.cuh"

#ifndef STAGED
#define STAGED 0  // 1: keys are put in order in shared memory before they go
#endif

// --8<-- [start:count]
// counts[digit][tile] = how many keys of the tile have this digit, and
// totals[digit] += the same: 0 before. A block for a tile.
extern "C" __global__ void __launch_bounds__(THREADS)
    count_tiles(const Key* __restrict__ keys, Count n, int shift,
                Count* __restrict__ counts, Count* __restrict__ totals) {
  __shared__ unsigned bins[DIGITS];
  if (threadIdx.x < DIGITS) bins[threadIdx.x] = 0;
  __syncthreads();
  const Count first = (Count)blockIdx.x * TILE;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const Count at = first + threadIdx.x + i * THREADS;
    if (at < n) atomicAdd(bins + digit_of(keys[at], shift), 1u);
  }
  __syncthreads();
  if (threadIdx.x >= DIGITS) return;
  const Count count = bins[threadIdx.x];
  counts[(size_t)threadIdx.x * gridDim.x + blockIdx.x] = count;
  if (count) atomicAdd(totals + threadIdx.x, count);
}
// --8<-- [end:count]

// --8<-- [start:scan]
// counts[digit][tile] = how many keys have a digit before this one, or this one
// in a tile before. A block of 256 threads for a digit.
extern "C" __global__ void __launch_bounds__(DIGITS)
    scan_tiles(Count* __restrict__ counts, const Count* __restrict__ totals,
               int tiles) {
  constexpr int EACH = 8;  // tiles of a thread
  __shared__ Count before;
  const int digit = blockIdx.x;
  Count* const row = counts + (size_t)digit * tiles;
  const Count place = sum_before(totals[threadIdx.x]);
  // `sum_before` reads 16 bytes at once, and `before` lies among them.
  __syncthreads();
  if (threadIdx.x == digit) before = place;
  for (int from = 0; from < tiles; from += DIGITS * EACH) {
    const int mine = from + threadIdx.x * EACH;
    Count count[EACH], own = 0;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
      count[i] = mine + i < tiles ? row[mine + i] : 0;
      own += count[i];
    }
    __syncthreads();  // `before` is there, and what `sum_before` uses is free
    const Count earlier = sum_before(own);
    Count at = before + earlier;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
      if (mine + i < tiles) row[mine + i] = at;
      at += count[i];
    }
    __syncthreads();  // all have read `before`
    if (threadIdx.x == DIGITS - 1) before = at;
  }
}
// --8<-- [end:scan]

// --8<-- [start:scatter]
// keys_out = the keys in the order of the digit at `shift`, equal digits as
// before. places: what scan_tiles made. A block for a tile. totals: are 0
// afterwards, for the next digit.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    scatter(const Key* __restrict__ keys, Key* __restrict__ keys_out,
            const Value* __restrict__ values, Value* __restrict__ values_out,
            Count n, int shift, const Count* __restrict__ places,
            Count* __restrict__ totals) {
  extern __shared__ __align__(16) unsigned char memory[];
  Key* const staged = reinterpret_cast<Key*>(memory);
  Count* const to = reinterpret_cast<Count*>(staged + (STAGED ? TILE : 0));
  unsigned* const counters = reinterpret_cast<unsigned*>(to + DIGITS);
#if PAIRS && STAGED
  Value* const staged_values = reinterpret_cast<Value*>(counters + COUNTERS);
#endif
  const int tile = blockIdx.x, tiles = gridDim.x;
  clear_counters(counters);
  __syncthreads();
  const Count first = (Count)tile * TILE;
  const unsigned left = n - first < TILE ? (unsigned)(n - first) : TILE;
  Key key[ITEMS];
  load_tile(keys + first, left, LAST, key);
#if PAIRS
  Value value[ITEMS];
  load_tile(values + first, left, 0u, value);
#endif
  unsigned rank[ITEMS];
  const unsigned start = rank_tile(
      key, shift, left, counters, [](unsigned) {},
      [&](int i, unsigned r) { rank[i] = r; });
  if (threadIdx.x < DIGITS) {
    to[threadIdx.x] = places[(size_t)threadIdx.x * tiles + tile] - start;
    if (tile == 0) totals[threadIdx.x] = 0;
  }
#if STAGED
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    staged[rank[i]] = key[i];
#if PAIRS
    staged_values[rank[i]] = value[i];
#endif
  }
#endif
  __syncthreads();
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
#if STAGED
    const unsigned at = threadIdx.x + i * THREADS;
    if (at >= left) break;
    key[i] = staged[at];
#if PAIRS
    value[i] = staged_values[at];
#endif
#else
    const unsigned at = rank[i];
    if (at >= left) continue;
#endif
    const Count there = to[digit_of(key[i], shift)] + at;
    keys_out[there] = key[i];
#if PAIRS
    values_out[there] = value[i];
#endif
  }
}
// --8<-- [end:scatter]
