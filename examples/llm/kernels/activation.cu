// SwiGLU; the rows of the embedding that a batch needs, and rows of fp32 that
// are picked from others.
// requires: sm_80
#include <cuda_fp16.h>

#include "ptx/overlap.cuh"
#include "rows.cuh"

// out[r][c] = silu(gate[r][c]) up[r][c], in fp32, rounded once;
// silu(x) = x / (1 + e^-x). A row of gate_up holds `width` of gate, then
// `width` of up. VEC: elements of a load; more than 1 asks for rows that begin
// at multiples of VEC elements, and for a width that is a multiple of VEC. A
// thread has PER vectors, which lie blockDim.x apart; `parts` blocks have a
// row.
// --8<-- [start:swiglu]
template <int VEC, int PER>
__global__ void __launch_bounds__(256)
    swiglu(const __nv_bfloat16* gate_up, long long stride,
           __nv_bfloat16* __restrict__ out, long long out_stride, int width,
           int parts) {
  using Bf16s = Vector<__nv_bfloat16, VEC>;
  begin_next();
  wait_for_previous();
  const unsigned row = blockIdx.x / (unsigned)parts;
  const int part = blockIdx.x - row * parts;
  const __nv_bfloat16* const gate = gate_up + row * stride;
  const __nv_bfloat16* const up = gate + width;
  out += row * out_stride;
  const int first = (part * PER * blockDim.x + threadIdx.x) * VEC;
  const int step = blockDim.x * VEC;
  Bf16s g[PER], u[PER];
#pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int c = first + k * step;
    if (c < width) {
      g[k] = *reinterpret_cast<const Bf16s*>(gate + c);
      u[k] = *reinterpret_cast<const Bf16s*>(up + c);
    }
  }
#pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int c = first + k * step;
    float y[VEC];
#pragma unroll
    for (int i = 0; i < VEC; ++i) {
      const float x = to_float(g[k].at[i]);
      // e^-x may be infinite: x / inf is 0.
      y[i] = __fdividef(x, 1.0f + expf(-x)) * to_float(u[k].at[i]);
    }
    if (c < width) store(out + c, y);
  }
}
// --8<-- [end:swiglu]

// x[t] = row tokens[t] of the embedding, in fp32; a block per token, 4 elements
// per thread and turn. A row of x begins at a multiple of 16 bytes. dim is a
// multiple of 4, in Q8_0 of 32. Tokens are not checked; -1 - i stands for
// drawn[i].
// --8<-- [start:embed]
__device__ __forceinline__ long long token_of(int token,
                                              const int* __restrict__ drawn) {
  return token < 0 ? drawn[-1 - token] : token;
}

extern "C" __global__ void __launch_bounds__(256)
    embed_bf16(const int* __restrict__ tokens, const int* __restrict__ drawn,
               const __nv_bfloat16* __restrict__ embedding,
               float* __restrict__ x, int dim) {
  using Bf16x4 = Vector<__nv_bfloat16, 4>;
  begin_next();
  wait_for_previous();
  const __nv_bfloat16* const row =
      embedding + token_of(tokens[blockIdx.x], drawn) * dim;
  x += (long long)blockIdx.x * dim;
  for (int c = threadIdx.x * 4; c < dim; c += blockDim.x * 4) {
    const Bf16x4 v = *reinterpret_cast<const Bf16x4*>(row + c);
    store(x + c, {to_float(v.at[0]), to_float(v.at[1]), to_float(v.at[2]),
                  to_float(v.at[3])});
  }
}

// out[t] = row indices[t] of x, both in fp32, as above.
extern "C" __global__ void __launch_bounds__(256)
    gather(const int* __restrict__ indices, const float* x,
           float* __restrict__ out, int dim) {
  begin_next();
  wait_for_previous();
  const float* const row = x + (long long)indices[blockIdx.x] * dim;
  out += (long long)blockIdx.x * dim;
  for (int c = threadIdx.x * 4; c < dim; c += blockDim.x * 4)
    *reinterpret_cast<float4*>(out + c) =
        *reinterpret_cast<const float4*>(row + c);
}

// Q8_0: 32 elements are a scale in fp16 and 32 int8, so that only every other
// byte is sure to be at a multiple of 2: loads take 2 bytes.
extern "C" __global__ void __launch_bounds__(256)
    embed_q8(const int* __restrict__ tokens, const int* __restrict__ drawn,
             const unsigned char* __restrict__ embedding, float* __restrict__ x,
             int dim) {
  constexpr int BYTES = 34;
  begin_next();
  wait_for_previous();
  const unsigned char* const row =
      embedding + token_of(tokens[blockIdx.x], drawn) * (dim / 32 * BYTES);
  x += (long long)blockIdx.x * dim;
  for (int c = threadIdx.x * 4; c < dim; c += blockDim.x * 4) {
    const auto* const block =
        reinterpret_cast<const unsigned short*>(row + c / 32 * BYTES);
    const float scale = __half2float(__ushort_as_half(block[0]));
    float y[4];
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const unsigned two = block[1 + (c % 32 + i) / 2];
      y[i] = scale * (signed char)(two & 255);
      y[i + 1] = scale * (signed char)(two >> 8);
    }
    store(x + c, y);
  }
}
// --8<-- [end:embed]

// Instances that are compiled by the tests:
// @instance swiglu<8,1>
// @instance swiglu<8,2>
// @instance swiglu<1,2>
