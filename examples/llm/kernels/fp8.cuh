// Keys and values of the cache in FP8: half the bytes of bf16, and decoding
// waits for bytes. The format is e4m3, the one for numbers that are multiplied:
// a sign, 4 bits of exponent, 3 of mantissa. It reaches to 448, its steps near
// zero are 2^-9, and it has no infinity but a NaN: 0x7f.
//
//   widened, widen   two or four numbers as bf16, which is exact
//   store            N floats as FP8, rounded to the nearest
//
// The cache holds x / scale. scales is [2, kv_heads] in fp32: in each layer one
// scale for all keys of a KV head, and one for its values. A kernel widens what
// it reads to bf16 at once; bf16 has more bits for both exponent and mantissa.
// It multiplies scores and results by their scale at the end. The products are
// bf16 products with sums in fp32. Hopper can also multiply FP8 numbers
// directly, but it then adds with fewer bits than fp32 has, and a kernel has to
// move long sums into fp32 every so often. That is not needed here, where
// products wait for memory.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp8.h>

// --8<-- [start:widen]
// The two numbers in the lower half of a word, as bf16. The way leads over
// fp16, because sm_89 and later have an instruction for that. Older GPUs need
// dozens of instructions: there such a cache saves memory, but no time.
__device__ __forceinline__ unsigned widened(unsigned two) {
  const __half2 half =
      __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)two, __NV_E4M3);
  const float2 x = __half22float2(half);
  const __nv_bfloat162 found = __floats2bfloat162_rn(x.x, x.y);
  return reinterpret_cast<const unsigned&>(found);
}

// Four numbers: the lower two, then the upper two.
__device__ __forceinline__ void widen(unsigned four, unsigned& low,
                                      unsigned& high) {
  low = widened(four & 0xffff), high = widened(four >> 16);
}
// --8<-- [end:widen]

// --8<-- [start:narrow]
// `store` of rows.cuh for FP8. N: how many numbers, even. Each is rounded to
// the nearest; what is too large becomes 448, and NaN stays.
template <int N>
__device__ __forceinline__ void store(__nv_fp8_e4m3* to, const float (&x)[N]) {
  struct alignas(N) {
    __nv_fp8x2_storage_t at[N / 2];
  } v;
#pragma unroll
  for (int i = 0; i < N; i += 2)
    v.at[i / 2] = __nv_cvt_float2_to_fp8x2(make_float2(x[i], x[i + 1]),
                                           __NV_SATFINITE, __NV_E4M3);
  *reinterpret_cast<decltype(v)*>(to) = v;
}
// --8<-- [end:narrow]
