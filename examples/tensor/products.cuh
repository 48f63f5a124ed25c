// What all kernels with wgmma do with a stage of shared memory, and with sums.
#pragma once
#include "wgmma.cuh"

constexpr int BK = 64;         // steps of depth in a stage: a line of a box
constexpr int BOX = 64 * 128;  // bytes of a box of 64 lines

// --8<-- [start:multiply]
// sum (+)= the product of 64 rows of A, one box along the depth, and BN columns
// of B, BN / 64 boxes across it: one stage, four steps of 16. Started and
// closed as a group, not waited for.
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
// Write 64 rows of sums to C as bf16, two columns at a time. n is even.
template <int SIZE>
__device__ __forceinline__ void store_sums(const float (&sum)[SIZE],
                                           __nv_bfloat16* C, int top, int left,
                                           int m, int n) {
  const int t = threadIdx.x % 128, row = top + t / 32 * 16 + t % 32 / 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (row + half * 8 >= m) continue;
    __nv_bfloat16* const line = C + (size_t)(row + half * 8) * n;
#pragma unroll
    for (int j = 0; j < SIZE / 4; ++j) {
      const int column = left + j * 8 + t % 4 * 2;
      if (column < n)
        *reinterpret_cast<__nv_bfloat162*>(line + column) =
            __floats2bfloat162_rn(sum[4 * j + 2 * half],
                                  sum[4 * j + 2 * half + 1]);
    }
  }
}
// --8<-- [end:store]
