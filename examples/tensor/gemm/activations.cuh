// Activations of epilogues, in fp32, as PyTorch defines them. Each is a class
// with an operator for one number.
//
//   None      x itself
//   Relu      x, or 0 for negative x
//   GeluErf   GELU, exact
//   GeluTanh  GELU, by tanh
#pragma once
#include "ptx/special.cuh"

// --8<-- [start:activations]
struct None {
  __device__ __forceinline__ float operator()(float x) const { return x; }
};

struct Relu {  // a NaN stays one
  __device__ __forceinline__ float operator()(float x) const {
    return x < 0.0f ? 0.0f : x;
  }
};

struct GeluErf {  // x P(z < x), where z has the normal distribution
  __device__ __forceinline__ float operator()(float x) const {
    return 0.5f * x * (1.0f + erff(x * 0.70710678f));
  }
};

struct GeluTanh {  // close to GeluErf; tanh is written with a power of two
  __device__ __forceinline__ float operator()(float x) const {
    // -2 log2(e) sqrt(2 / pi) (x + 0.044715 x^3)
    const float power = x * (-2.3022082f - 0.10294324f * (x * x));
    return x * reciprocal(1.0f + power_of_two(power));
  }
};
// --8<-- [end:activations]
