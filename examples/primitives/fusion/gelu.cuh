// GELU: x times the probability that a number of the normal distribution is
// below x.
//
//   gelu_erf       as defined
//   gelu_tanh      the approximation by tanh, and tanh by its exponential
//   gelu_tanh_fast, gelu_erf_fast  the same with fewer instructions
//   erf_fast, tanh_fast            what the fuser takes with fast=True
#pragma once
#include "ptx/special.cuh"

// --8<-- [start:gelu]
__device__ __forceinline__ float gelu_erf(float x) {
  return 0.5f * x * (1.0f + erff(x * 0.70710678f));
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), and since
// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)):
__device__ __forceinline__ float gelu_tanh(float x) {
  const float u = 0.79788456f * (x + 0.044715f * x * x * x);
  return x / (1.0f + expf(-2.0f * u));
}
// --8<-- [end:gelu]

// The same with the instructions of the special function units, which are off
// by some units in the last place: -2 log2(e) sqrt(2 / pi) = -2.3022082.
__device__ __forceinline__ float gelu_tanh_fast(float x) {
  const float power = x * (-2.3022082f - 0.10294324f * (x * x));
  return x * reciprocal(1.0f + power_of_two(power));
}

// 1 - erf(z) = t (a1 + t (a2 + ... )) exp(-z^2) with t = 1 / (1 + p z), off by
// at most 1.5e-7 for z >= 0 (Abramowitz and Stegun, 7.1.26).
// --8<-- [start:fast]
__device__ __forceinline__ float erfc_fast(float z) {
  const float t = reciprocal(1.0f + 0.3275911f * z);
  const float sum =
      t * (0.254829592f +
           t * (-0.284496736f +
                t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  return sum * power_of_two(-1.44269504f * z * z);
}

__device__ __forceinline__ float gelu_erf_fast(float x) {
  const float tail = 0.5f * erfc_fast(fabsf(x) * 0.70710678f);
  return x * (x > 0.0f ? 1.0f - tail : tail);
}
// --8<-- [end:fast]

__device__ __forceinline__ float erf_fast(float x) {
  return copysignf(1.0f - erfc_fast(fabsf(x)), x);
}

// (1 - e) / (1 + e) with e = exp(-2 |x|).
__device__ __forceinline__ float tanh_fast(float x) {
  const float e = power_of_two(-2.88539008f * fabsf(x));
  return copysignf((1.0f - e) * reciprocal(1.0f + e), x);
}
