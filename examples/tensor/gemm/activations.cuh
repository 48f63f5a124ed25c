// Activations of epilogues, in fp32, as PyTorch defines them. Each is a class
// with an operator for one number.
//
//   None                      x itself
//   Relu                      x, or 0 for negative x
//   GeluErf                   GELU, exact
//   GeluTanh                  GELU, by tanh
//   power_of_two, reciprocal  what these need of the special function units
#pragma once

// --8<-- [start:units]
// Each of these is one instruction of the special function units. Results are
// off by at most 2 units in the last place, and subnormal numbers become 0: so
// there is no need for the instructions that __expf and __fdividef have around
// theirs.
__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// --8<-- [end:units]

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
