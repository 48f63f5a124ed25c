// Activations of epilogues, in fp32: as PyTorch defines them.
#pragma once

// --8<-- [start:activations]
struct None {
  __device__ __forceinline__ float operator()(float x) const { return x; }
};

struct Relu {  // a NaN stays one
  __device__ __forceinline__ float operator()(float x) const {
    return x < 0.0f ? 0.0f : x;
  }
};

struct GeluErf {  // x P(z < x) of the normal distribution
  __device__ __forceinline__ float operator()(float x) const {
    return 0.5f * x * (1.0f + erff(x * 0.70710678f));
  }
};

struct GeluTanh {  // close to it: tanh, written with one exponential
  __device__ __forceinline__ float operator()(float x) const {
    const float u = x * (0.79788456f + 0.03567741f * x * x);
    return __fdividef(x, 1.0f + __expf(-2.0f * u));
  }
};
// --8<-- [end:activations]
