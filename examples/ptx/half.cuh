// The two types of 16 bits that the final kernel multiplies.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T>
constexpr bool IS_FP16 = false;
template <>
constexpr bool IS_FP16<__half> = true;

// Results of fp16 are of factors of fp16, all others of bf16.
template <class Out>
struct FactorsOf {
  using Type = __nv_bfloat16;
};
template <>
struct FactorsOf<__half> {
  using Type = __half;
};
