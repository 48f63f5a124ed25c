// What the compactions of this chapter do with a tile: which elements stay, and
// how many of them lie before each. The tile's rows are those of the scans.
#pragma once
#include "primitives/scan/look_back.cuh"

#ifndef KEEP
#define KEEP(x) ((x) > T(0))  // which elements stay
#endif
#ifndef FLAGS
#define FLAGS 0  // 1: those stay whose flag, a byte, is not 0
#endif
#ifndef PARTITION
#define PARTITION 0  // 1: what does not stay goes to the end, last one first
#endif
#ifndef PACKED
#define PACKED 1  // 0: counts by ballots, one for each element of a thread
#endif
#ifndef COUNTED_IN
#define COUNTED_IN unsigned  // or long long, from 2^32 elements on
#endif
using Count = COUNTED_IN;

constexpr int PER_THREAD = VECTORS * PER_VECTOR;
static_assert(PER_THREAD <= 32, "a bit for each element of a thread");
static_assert(BLOCK * sizeof(T) >= 128, "write_staged begins in its first row");

// --8<-- [start:put]
__device__ __forceinline__ void put(T* to, T x) {
  if (STREAMED)
    __stcs(to, x);
  else
    *to = x;
}
// --8<-- [end:put]

struct alignas(PER_VECTOR) Flags {
  unsigned char at[PER_VECTOR];
};

// How many elements of a tile there are.
__device__ __forceinline__ int size_of(long long tile, long long n) {
  const long long left = n - tile * TILE;
  return left < TILE ? (int)left : TILE;
}

// Bit k * PER_VECTOR + i tells whether element i of row k stays. flags: of the
// tile, which has `size` elements.
// --8<-- [start:kept]
__device__ __forceinline__ unsigned kept_bits(
    const Vector (&v)[VECTORS], const unsigned char* __restrict__ flags,
    int size) {
  const int first = (int)first_of(0);
  unsigned bits = 0;
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) {
    Flags row = {};
    if (FLAGS && size == TILE)
      row = *reinterpret_cast<const Flags*>(flags + first + k * ROW);
#pragma unroll
    for (int i = 0; i < PER_VECTOR; ++i) {
      const int at = first + k * ROW + i;
      bool kept = FLAGS ? row.at[i] != 0 : KEEP(v[k].at[i]);
      if (size < TILE) kept = at < size && (FLAGS ? flags[at] != 0 : kept);
      bits |= (unsigned)kept << (k * PER_VECTOR + i);
    }
  }
  return bits;
}
// --8<-- [end:kept]

// before[k]: how many stay of what precedes vector k in this warp. Returns how
// many stay in the warp.
// --8<-- [start:ballots]
__device__ __forceinline__ int count_by_ballots(unsigned bits,
                                                int (&before)[VECTORS]) {
  const unsigned lower = (1u << threadIdx.x % 32) - 1;
  int rows = 0;
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) {
    int left = 0, all = 0;
#pragma unroll
    for (int i = 0; i < PER_VECTOR; ++i) {
      const unsigned kept =
          __ballot_sync(ALL, bits >> (k * PER_VECTOR + i) & 1);
      left += __popc(kept & lower);
      all += __popc(kept);
    }
    before[k] = rows + left;
    rows += all;
  }
  return rows;
}
// --8<-- [end:ballots]

// The same by scans: four rows in one, since 8 bits hold the number of a row.
// --8<-- [start:packed]
static_assert(ROW < 256, "a byte for each row");

__device__ __forceinline__ int count_packed(unsigned bits,
                                            int (&before)[VECTORS]) {
  constexpr unsigned OWN = (1u << PER_VECTOR) - 1;
  int rows = 0;
#pragma unroll
  for (int g = 0; g < VECTORS; g += 4) {
    unsigned own = 0;
#pragma unroll
    for (int k = g; k < VECTORS && k < g + 4; ++k)
      own |= __popc(bits >> k * PER_VECTOR & OWN) << 8 * (k - g);
    const unsigned sums = warp_inclusive(own);
    const unsigned all = from(sums, 31), left = sums - own;
#pragma unroll
    for (int k = g; k < VECTORS && k < g + 4; ++k) {
      before[k] = rows + (left >> 8 * (k - g) & 255);
      rows += all >> 8 * (k - g) & 255;
    }
  }
  return rows;
}
// --8<-- [end:packed]

__device__ __forceinline__ int count_rows(unsigned bits,
                                          int (&before)[VECTORS]) {
  return PACKED ? count_packed(bits, before) : count_by_ballots(bits, before);
}

// The tile in order: first what stays, then the rest. in_tile: how many stay of
// what precedes this warp; total: of the tile.
// --8<-- [start:stage]
__device__ __forceinline__ void stage_rows(const Vector (&v)[VECTORS],
                                           unsigned bits,
                                           const int (&before)[VECTORS],
                                           int in_tile, int total, T* staged) {
  const int first = (int)first_of(0);
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) {
    T* place = staged + in_tile + before[k];
#pragma unroll
    for (int i = 0; i < PER_VECTOR; ++i) {
      const int at = k * ROW + i;
      if (bits & 1u << k * PER_VECTOR + i)
        *place++ = v[k].at[i];
      else if (PARTITION)
        staged[total + first + at - (int)(place - staged)] = v[k].at[i];
    }
  }
}
// --8<-- [end:stage]

// The staged tile to its places. found: how many stay of what precedes it.
// --8<-- [start:write]
__device__ __forceinline__ void write_staged(const T* staged, long long tile,
                                             long long n, long long found,
                                             int total, T* __restrict__ out) {
  // A warp begins where a line of 128 bytes begins.
  const int shift = (int)(found % (128 / (int)sizeof(T)));
  T* to = out + (found - shift);
  const T* from = staged - shift;
  int i = threadIdx.x;
  if (i >= shift && i < shift + total) put(to + i, from[i]);
#pragma unroll 4
  for (i += BLOCK; i < shift + total; i += BLOCK) put(to + i, from[i]);
  if (!PARTITION) return;
  const int size = size_of(tile, n);
  T* end = out + (n - 1 - (tile * TILE - found) + total);
#pragma unroll 4
  for (i = total + threadIdx.x; i < size; i += BLOCK) put(end - i, staged[i]);
}
// --8<-- [end:write]
