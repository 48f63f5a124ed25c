// What the kernels of decoding ask of the hardware, beyond mma.cuh.
#pragma once
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
