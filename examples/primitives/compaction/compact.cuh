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
#ifndef COUNTED_IN
#define COUNTED_IN unsigned  // or long long, from 2^32 elements on
#endif
using Count = COUNTED_IN;

constexpr int PER_THREAD = VECTORS * PER_VECTOR;
static_assert(PER_THREAD <= 32, "a bit for each element of a thread");

struct alignas(PER_VECTOR) Flags {
  unsigned char at[PER_VECTOR];
};

// Bit k * PER_VECTOR + i tells whether element i of row k stays.
// --8<-- [start:kept]
__device__ __forceinline__ unsigned kept_bits(
    const Vector (&v)[VECTORS], const unsigned char* __restrict__ flags,
    long long tile, long long n) {
  const long long first = first_of(tile);
  const bool full = (tile + 1) * TILE <= n;
  unsigned bits = 0;
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) {
    Flags row = {};
    if (FLAGS && full)
      row = *reinterpret_cast<const Flags*>(flags + first + k * ROW);
#pragma unroll
    for (int i = 0; i < PER_VECTOR; ++i) {
      const long long at = first + k * ROW + i;
      bool kept = FLAGS ? row.at[i] != 0 : KEEP(v[k].at[i]);
      if (!full) kept = at < n && (FLAGS ? flags[at] != 0 : kept);
      bits |= (unsigned)kept << (k * PER_VECTOR + i);
    }
  }
  return bits;
}
// --8<-- [end:kept]

// before[k]: how many stay of what precedes vector k in this warp. Returns how
// many stay in the warp.
// --8<-- [start:count]
__device__ __forceinline__ int count_rows(unsigned bits,
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
// --8<-- [end:count]

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
    int place = in_tile + before[k];
#pragma unroll
    for (int i = 0; i < PER_VECTOR; ++i) {
      const bool kept = bits >> (k * PER_VECTOR + i) & 1;
      const int other = total + first + k * ROW + i - place;
      if (PARTITION || kept) staged[kept ? place : other] = v[k].at[i];
      place += kept;
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
  constexpr int LINE = 128 / sizeof(T);
  for (int i = threadIdx.x - (int)(found % LINE); i < total; i += BLOCK)
    if (i >= 0) out[found + i] = staged[i];
  if (!PARTITION) return;
  const long long begin = tile * TILE, end = n - 1 - (begin - found) + total;
  const int size = n - begin < TILE ? (int)(n - begin) : TILE;
  for (int i = total + threadIdx.x; i < size; i += BLOCK)
    out[end - i] = staged[i];
}
// --8<-- [end:write]
