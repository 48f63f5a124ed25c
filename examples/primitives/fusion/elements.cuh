// What the kernels of this chapter share: vectors of elements, and their
// conversion to fp32.
//
//   Vector    N elements that one instruction loads or stores
//   to_float  an element in fp32
//   rounded   fp32 as an element
#pragma once
#include <cuda_bf16.h>

// --8<-- [start:vector]
template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
  T at[N];
};
// --8<-- [end:vector]

__device__ __forceinline__ float to_float(float x) { return x; }

// bf16 is the upper half of an fp32.
__device__ __forceinline__ float to_float(__nv_bfloat16 x) {
  return __uint_as_float((unsigned)__bfloat16_as_ushort(x) << 16);
}

template <class T>
__device__ __forceinline__ T rounded(float x);

template <>
__device__ __forceinline__ float rounded<float>(float x) {
  return x;
}

template <>
__device__ __forceinline__ __nv_bfloat16 rounded<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
