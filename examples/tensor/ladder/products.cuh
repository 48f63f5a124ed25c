// What all rungs with wgmma do with a stage of shared memory, and with sums.
//
//   multiply_stage  the products of a stage
//   store_sums      64 rows of sums to C
#pragma once
#include "ptx/special.cuh"
#include "ptx/wgmma.cuh"

constexpr int BK = 64;         // steps of depth in a stage: a line of a box
constexpr int BOX = 64 * 128;  // bytes of a box of 64 lines

// --8<-- [start:multiply]
// sum (+)= the product of 64 rows of A, one box along the depth, and BN columns
// of B, BN / 64 boxes across it: one stage, four steps of 16. The products are
// started and closed as a group; nothing waits for them here. a, b: where the
// boxes begin in shared memory; SIZE: sums of a thread, BN / 2.
template <int SIZE>
__device__ __forceinline__ void multiply_stage(float (&sum)[SIZE], unsigned a,
                                               unsigned b, bool add) {
  const Descriptor of_a(a), of_b(b, BOX);
  fence_sums();
#pragma unroll
  for (int i = 0; i < BK / 16; ++i)
    wgmma<true, false>(sum, of_a.at(i * NEXT_DEPTH<true>),
                       of_b.at(i * NEXT_DEPTH<false>), add || i > 0);
  close_products();
}
// --8<-- [end:multiply]

// --8<-- [start:store]
// Write 64 rows of sums to C as bf16. n is a multiple of 8. Of a row four lanes
// hold two columns of every eight each, so a store of these would fill 16 bytes
// of a sector of 32. So neighboring lanes first exchange a pair:
//
//     lane % 4            0            1            2            3
//     holds columns    0 1 | 8 9   2 3 | 10 11  4 5 | 12 13  6 7 | 14 15
//     stores columns      0-3         8-11         4-7         12-15
template <int SIZE>
__device__ __forceinline__ void store_sums(const float (&sum)[SIZE],
                                           __nv_bfloat16* C, int top, int left,
                                           int m, int n) {
  static_assert(SIZE % 8 == 0, "16 columns at a time");
  const int t = threadIdx.x % 128, row = top + t / 32 * 16 + t % 32 / 4;
  const bool odd = t % 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    __nv_bfloat16* const line = C + (size_t)(row + half * 8) * n;
#pragma unroll
    for (int j = 0; j < SIZE / 4; j += 2) {
      const float* const s = sum + 4 * j + 2 * half;
      const unsigned low = pack(s[0], s[1]), high = pack(s[4], s[5]);
      const unsigned got = __shfl_xor_sync(~0u, odd ? low : high, 1);
      const int column = left + (j + odd) * 8 + t % 4 / 2 * 4;
      if (row + half * 8 < m && column < n)
        *reinterpret_cast<uint2*>(line + column) =
            odd ? make_uint2(got, high) : make_uint2(low, got);
    }
  }
}
// --8<-- [end:store]
