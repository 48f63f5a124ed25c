// The elementwise kernels of a step: SwiGLU, and rows that are looked up.
//
//   swiglu      out = silu(gate) * up, row by row
//   token_of    a token, or the one that an earlier kernel has drawn
//   embed_bf16  the rows of a bf16 embedding that the tokens of a batch need
//   embed_q8    the same from an embedding in Q8_0
//   gather      some rows of a matrix in fp32, picked by their numbers
//
// requires: sm_80
#include <cuda_fp16.h>

#include "ptx/overlap.cuh"
#include "rows.cuh"

// out[r][c] = silu(gate[r][c]) * up[r][c], in fp32 and rounded once, where
// silu(x) = x / (1 + e^-x). A row of gate_up holds `width` elements of gate,
// then `width` elements of up. `parts` blocks share a row.
//
// VEC: elements that one load brings, 1 to 8. With more than 1, rows have to
//   begin at multiples of VEC elements, and width has to be a multiple of VEC.
// PER: vectors of a thread; they lie blockDim.x vectors apart.
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

// x[t] = row tokens[t] of the embedding, in fp32. A block has one token; a
// thread converts 4 elements at a time. Rows of x begin at multiples of 16
// bytes, and dim is a multiple of 4, for Q8_0 of 32. The token -1 - i stands
// for drawn[i], which an earlier kernel has sampled. Tokens are not checked.
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

// out[t] = row indices[t] of x, both in fp32; otherwise as embed_bf16.
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

// Q8_0 stores 32 elements as a scale in fp16 and 32 int8: 34 bytes. A block of
// them begins at a multiple of 2 bytes only, so each load takes 2 bytes.
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
