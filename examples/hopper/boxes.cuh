// From sums to C by way of shared memory: boxes that the TMA stores.
//
//   sync_consumer  a barrier of one consumer
//   pack           two numbers rounded to 16 bits each, in one word
//   stmatrix       four small matrices from registers to shared memory
//   write_box      64 columns of sums into a box
//   store_boxes    all columns of sums to C, box by box
#pragma once
#include "ptx/half.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/special.cuh"
#include "ptx/tma.cuh"

// --8<-- [start:warpgroup]
// A barrier of the 128 threads of consumer 0, 1, ...; barrier 0 of the hardware
// is that of __syncthreads.
__device__ __forceinline__ void sync_consumer(int consumer) {
  sync_at<128>(consumer + 1);
}
// --8<-- [end:warpgroup]

// Two numbers rounded to Out, bf16 or fp16, in one word: the first in the lower
// half.
template <class Out>
__device__ __forceinline__ unsigned pack(float first, float second) {
  if constexpr (!IS_FP16<Out>) return pack(first, second);
  unsigned word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
}

// --8<-- [start:stmatrix]
// The reverse of ldmatrix: store four 8 x 8 matrices of 16-bit elements to
// shared memory. Lane i gives the address of a row of 16 bytes: row i % 8 of
// matrix i / 8. With g = lane / 4 and t = lane % 4 a lane has the elements 2t,
// 2t + 1 of row g of every matrix, in the words w0 to w3.
__device__ __forceinline__ void stmatrix(unsigned row, unsigned w0, unsigned w1,
                                         unsigned w2, unsigned w3) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
          row),
      "r"(w0), "r"(w1), "r"(w2), "r"(w3)
      : "memory");
}
// --8<-- [end:stmatrix]

// --8<-- [start:write]
// Write columns 64 * which to 64 * which + 63 of a warpgroup's 64 rows of sums,
// rounded to Out, into a box as the TMA reads it with the swizzle of 128 bytes:
// piece c of line r is at piece c ^ r % 8. So eight lines of a matrix lie in
// all 32 banks. SIZE: sums of a thread, half as many as columns.
template <class Out = __nv_bfloat16, int SIZE>
__device__ __forceinline__ void write_box(const float (&sum)[SIZE], int which,
                                          unsigned box) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
  const unsigned line = box + (warp * 16 + lane % 16) * 128;
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {  // pairs of matrices side by side
    const float* const s = sum + 32 * which + 8 * pair;
    stmatrix(line + ((2 * pair + lane / 16) ^ lane % 8) * 16,
             pack<Out>(s[0], s[1]), pack<Out>(s[2], s[3]),
             pack<Out>(s[4], s[5]), pack<Out>(s[6], s[7]));
  }
}
// --8<-- [end:write]

// --8<-- [start:store]
// Store a warpgroup's 64 rows of sums through BUFFERS boxes of shared memory,
// in turn. All threads of the warpgroup call this. The first of them asks the
// TMA, and returns while the last boxes are still on their way.
template <int BUFFERS, class Out = __nv_bfloat16, int SIZE>
__device__ __forceinline__ void store_boxes(const float (&sum)[SIZE],
                                            const CUtensorMap& C, int top,
                                            int left, unsigned char* buffers,
                                            int consumer) {
  const bool first = threadIdx.x % 128 == 0;
#pragma unroll
  for (int which = 0; which < SIZE / 32; ++which) {
    unsigned char* const box = buffers + which % BUFFERS * (64 * 128);
    if (first) wait_for_reads<BUFFERS - 1>();  // the box is free again
    sync_consumer(consumer);
    write_box<Out>(sum, which, shared_address(box));
    fence_for_tma();
    sync_consumer(consumer);
    if (first) {
      store_box(C, top, left + which * 64, box);
      close_stores();
    }
  }
}
// --8<-- [end:store]
