// The two types of 16 bits that tensor/ladder/final.cu multiplies.
//
//   IS_FP16<T>      whether T is fp16
//   FactorsOf<Out>  the type of the factors of results of type Out
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T>
constexpr bool IS_FP16 = false;
template <>
constexpr bool IS_FP16<__half> = true;

// Results in fp16 have factors in fp16, all other results have factors in bf16.
template <class Out>
struct FactorsOf {
  using Type = __nv_bfloat16;
};
template <>
struct FactorsOf<__half> {
  using Type = __half;
};
