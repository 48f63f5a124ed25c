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
#ifndef COUNT
#define COUNT unsigned  // or long long, from 2^32 elements on
#endif
using Count = COUNT;

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
