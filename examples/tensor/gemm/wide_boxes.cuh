// From sums to C in fp32 by way of shared memory: boxes that the TMA stores.
//
//   write_wide_box    32 columns of sums into a box
//   store_wide_boxes  all columns of sums to C, box by box
#pragma once
#include "hopper/boxes.cuh"

// --8<-- [start:write]
// Write columns 32 * which to 32 * which + 31 of a warpgroup's 64 rows of sums
// into a box of 64 lines of 32 words, as the TMA reads it with the swizzle of
// 128 bytes: piece c of line r is at piece c ^ r % 8. SIZE: sums of a thread,
// half as many as columns.
template <int SIZE>
__device__ __forceinline__ void write_wide_box(const float (&sum)[SIZE],
                                               int which, unsigned char* box) {
  const int t = threadIdx.x % 128, row = t / 32 * 16 + t % 32 / 4;
  unsigned char* const line = box + row * 128 + t % 2 * 8;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    unsigned char* const to = line + ((2 * j + t % 4 / 2) ^ row % 8) * 16;
    const float* const s = sum + 16 * which + 4 * j;
    *reinterpret_cast<float2*>(to) = make_float2(s[0], s[1]);
    *reinterpret_cast<float2*>(to + 8 * 128) = make_float2(s[2], s[3]);
  }
}
// --8<-- [end:write]

// --8<-- [start:store]
// The same as store_boxes, with boxes of 64 rows and 32 columns.
template <int BUFFERS, int SIZE>
__device__ __forceinline__ void store_wide_boxes(const float (&sum)[SIZE],
                                                 const CUtensorMap& C, int top,
                                                 int left,
                                                 unsigned char* buffers,
                                                 int consumer) {
  const bool first = threadIdx.x % 128 == 0;
#pragma unroll
  for (int which = 0; which < SIZE / 16; ++which) {
    unsigned char* const box = buffers + which % BUFFERS * (64 * 128);
    if (first) wait_for_reads<BUFFERS - 1>();  // the box is free again
    sync_consumer(consumer);
    write_wide_box(sum, which, box);
    fence_for_tma();
    sync_consumer(consumer);
    if (first) {
      store_box(C, top, left + which * 32, box);
      close_stores();
    }
  }
}
// --8<-- [end:store]
