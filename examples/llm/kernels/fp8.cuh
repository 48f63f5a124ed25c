// Keys and values of the cache in FP8, of which e4m3 is the format for numbers
// that are multiplied: a sign, 4 bits of exponent, 3 of mantissa. It reaches to
// 448, and its steps are 2^-9 near zero; it has no infinity, but a NaN: 0x7f.
// That is half the bytes of bf16, and decoding is a matter of bytes.
//
// The cache holds x / scale, with a scale for all keys of a KV head of a layer
// and one for its values: scales, [2, kv_heads], fp32. What is read becomes
// bf16 at once, which is exact, since bf16 has more bits for both parts; scores
// and results are multiplied by their scale at the end. The products are those
// of bf16, so their sums are fp32. Hopper can also multiply FP8 numbers as they
// are, but then adds up with fewer bits than fp32 has, and long sums have to be
// taken out and continued in fp32 every so often. Nothing of that is needed
// here, where products wait for memory.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp8.h>

// --8<-- [start:widen]
// Two numbers, the lower half of a word, as bf16, by way of fp16: that is what
// there is an instruction for, from sm_89 on. Before, it takes dozens of them,
// and such a cache saves memory, but no time.
__device__ __forceinline__ unsigned widened(unsigned two) {
  const __half2 half =
      __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)two, __NV_E4M3);
  const float2 x = __half22float2(half);
  const __nv_bfloat162 found = __floats2bfloat162_rn(x.x, x.y);
  return reinterpret_cast<const unsigned&>(found);
}

// Four numbers, the lower two and the others.
__device__ __forceinline__ void widen(unsigned four, unsigned& low,
                                      unsigned& high) {
  low = widened(four & 0xffff), high = widened(four >> 16);
}
// --8<-- [end:widen]

// --8<-- [start:narrow]
// N numbers, an even number of them, rounded to the nearest; what is too large
// becomes 448, and NaN stays. As `store` of rows.cuh.
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
