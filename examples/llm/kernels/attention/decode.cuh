// What decode.cu needs beside its kernel: instructions that ptx/mma.cuh lacks,
// factors from an FP8 cache, and the sum over the parts of a sequence.
//
//   turned        transposes an 8 x 8 matrix among the lanes of a warp
//   load_keys     the first factor of K Q^T from keys in FP8
//   load_values   the first factor of V^T P^T from values in FP8
//   add_parts     joins the parts of a sequence, in the last of its blocks
#pragma once
#include "llm/kernels/fp8.cuh"
#include "ptx/mma.cuh"
#include "ptx/special.cuh"
#include "ptx/ticket.cuh"

constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;
constexpr int HEADS = 8;  // query heads of a block: the columns of a product
constexpr int TILE = 16;  // keys of a warp in one product

// Transposes an 8 x 8 matrix of 16-bit elements: a lane gives elements 2t and
// 2t + 1 of row g and receives those of column g (g = lane / 4, t = lane % 4).
__device__ __forceinline__ unsigned turned(unsigned pair) {
  unsigned to;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;"
               : "=r"(to)
               : "r"(pair));
  return to;
}

// First factors of products, from keys and values in FP8. Two FP8 numbers lie
// in the place of one 16-bit element, so one ldmatrix reads enough for two
// products. The even product (odd = 0) reads into `four`; the odd one finds the
// rest there. row: where this lane's row lies, as for bf16.
//
// Keys: a lane receives elements 4t to 4t + 3 of keys g and g + 8. The first
// two serve as elements 2t and 2t + 1, the others as 2t + 8 and 2t + 9.
// --8<-- [start:load-fp8]
__device__ __forceinline__ void load_keys(unsigned (&a)[4], unsigned (&four)[4],
                                          unsigned row, int odd) {
  if (!odd) ldmatrix(four, row);
  widen(four[odd * 2], a[0], a[2]);
  widen(four[odd * 2 + 1], a[1], a[3]);
}

// Values: a lane receives elements 2g and 2g + 1 of keys 2t and 2t + 1, and of
// the keys 8 further on. Element 2g serves as g, element 2g + 1 as g + 8.
__device__ __forceinline__ void load_values(unsigned (&a)[4],
                                            unsigned (&four)[4], unsigned row,
                                            int odd) {
  if (!odd) ldmatrix_turned(four, row);
  widen(__byte_perm(four[odd], 0, 0x3120), a[0], a[1]);
  widen(__byte_perm(four[odd + 2], 0, 0x3120), a[2], a[3]);
}
// --8<-- [end:load-fp8]

// --8<-- [start:parts]
// The last block to arrive adds the parts, always in the same order. Row h of
// part p is D words of `partials` from (row_of_part(p) + h) * D on; its m and l
// stand in tops[row_of_part(p) + h]. Row: the type of the function row_of_part.
template <int D, class Row>
__device__ __forceinline__ void add_parts(unsigned* ticket, int parts,
                                          int heads_here, Row&& row_of_part,
                                          const float* partials,
                                          const float2* tops, float by_scale,
                                          __nv_bfloat16* out, float* lse) {
  __shared__ float top[HEADS];
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) last = last_to_arrive(ticket, parts);
  __syncthreads();
  if (!last) return;
  const int lane = threadIdx.x % 32;
  for (int h = threadIdx.x / 32; h < heads_here; h += blockDim.x / 32) {
    float most = -INFINITY;
    for (int p = lane; p < parts; p += 32)
      most = fmaxf(most, __ldcg(tops + row_of_part(p) + h).x);
#pragma unroll
    for (int away = 1; away < 32; away *= 2)
      most = fmaxf(most, __shfl_xor_sync(~0u, most, away));
    if (lane == 0) top[h] = most;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < heads_here * D / 4; i += blockDim.x) {
    const int h = i / (D / 4);
    float4 total = {0, 0, 0, 0};
    float sum_of_parts = 0.0f;
#pragma unroll 8  // eight loads are under way at once
    for (int p = 0; p < parts; ++p) {
      const float2 of_part = __ldcg(tops + row_of_part(p) + h);
      const float4 four = __ldcg(
          reinterpret_cast<const float4*>(partials + row_of_part(p) * D) + i);
      const float weight = exp2f(of_part.x - top[h]);
      sum_of_parts += weight * of_part.y;
      total.x += weight * four.x, total.y += weight * four.y;
      total.z += weight * four.z, total.w += weight * four.w;
    }
    const float by = 1.0f / sum_of_parts * by_scale;
    reinterpret_cast<uint2*>(out)[i] = make_uint2(
        pack(total.x * by, total.y * by), pack(total.z * by, total.w * by));
    if (i % (D / 4) == 0) lse[h] = (top[h] + log2f(sum_of_parts)) * LN_2;
  }
}
// --8<-- [end:parts]
