// What the kernels of decoding ask of the hardware, beyond mma.cuh.
#pragma once
#include "fp8.cuh"
#include "mma.cuh"
#include "ticket.cuh"

// As `ldmatrix`, but a lane receives the elements 2t, 2t + 1 of column g.
__device__ __forceinline__ void ldmatrix_turned(unsigned (&tile)[4],
                                                unsigned row) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(tile[0]), "=r"(tile[1]), "=r"(tile[2]), "=r"(tile[3])
      : "r"(row)
      : "memory");
}

// An 8 x 8 matrix of 16-bit elements, of which a lane holds 2t and 2t + 1 of
// row g; it receives those of column g.
__device__ __forceinline__ unsigned turned(unsigned pair) {
  unsigned to;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;"
               : "=r"(to)
               : "r"(pair));
  return to;
}

__device__ __forceinline__ unsigned packed(float low, float high) {
  const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const unsigned&>(two);
}

// First factors from keys and values in FP8. Two of them take the place of one
// 16-bit element, so what one instruction reads is enough for two products: for
// the first of them it goes to `four`, for the second (`odd`) it is there. row:
// as for bf16.
//
// Keys: a lane receives the elements 4t to 4t + 3 of keys g and g + 8. The
// first two serve as 2t and 2t + 1, the others as 2t + 8 and 2t + 9.
// --8<-- [start:load-fp8]
__device__ __forceinline__ void load_keys(unsigned (&a)[4], unsigned (&four)[4],
                                          unsigned row, int odd) {
  if (!odd) ldmatrix(four, row);
  widen(four[odd * 2], a[0], a[2]);
  widen(four[odd * 2 + 1], a[1], a[3]);
}

// Values: it receives 2g and 2g + 1 of keys 2t and 2t + 1, and of those 8
// further on. Elements 2g serve as g, 2g + 1 as g + 8.
__device__ __forceinline__ void load_values(unsigned (&a)[4],
                                            unsigned (&four)[4], unsigned row,
                                            int odd) {
  if (!odd) ldmatrix_turned(four, row);
  widen(__byte_perm(four[odd], 0, 0x3120), a[0], a[1]);
  widen(__byte_perm(four[odd + 2], 0, 0x3120), a[2], a[3]);
}
// --8<-- [end:load-fp8]
