// An epilogue as a kernel of its own: out = activation(C + bias) + R, all in
// bf16, computed in fp32. A thread takes eight columns of a row at a time,
// which are 16 bytes.
// requires: sm_80
#include <cuda_bf16.h>

#include "activations.cuh"

// Eight elements, loaded and stored by one instruction.
struct alignas(16) Eight {
  __nv_bfloat162 pair[4];
};

// `columns`: pieces of eight in a row; `size`: pieces in C. bias and residual
// may be null; out may be C. Activation: a class of activations.cuh. Grid: any
// number of blocks of 256.
// --8<-- [start:after]
template <class Activation>
__global__ void __launch_bounds__(256)
    after(const Eight* C, const Eight* __restrict__ bias, const Eight* residual,
          Eight* out, int columns, int size) {
  const Activation activation;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size;
       i += gridDim.x * blockDim.x) {
    Eight x = C[i], b = {}, r = {};
    if (bias) b = bias[i % columns];
    if (residual) r = residual[i];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 old = __bfloat1622float2(x.pair[j]),
                   add = __bfloat1622float2(b.pair[j]),
                   more = __bfloat1622float2(r.pair[j]);
      x.pair[j] = __floats2bfloat162_rn(activation(old.x + add.x) + more.x,
                                        activation(old.y + add.y) + more.y);
    }
    out[i] = x;
  }
}
// --8<-- [end:after]

// Instances that are compiled by the tests:
// @instance after<None>
// @instance after<GeluErf>
// @instance after<GeluTanh>
