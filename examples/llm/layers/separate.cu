// What norms.cu and activation.cu do in one kernel, here with one kernel for
// each operation, for comparison. The number of elements is a multiple of the
// vector, and arrays begin at multiples of 16 bytes.
//
//   add_rows        x += added
//   silu_rows       out = silu(gate)
//   multiply_rows   out *= up
//
// requires: sm_80
#include "llm/kernels/rows.cuh"

using Float4 = Vector<float, 4>;
using Bf16x4 = Vector<__nv_bfloat16, 4>;
using Bf16x8 = Vector<__nv_bfloat16, 8>;

// x += added. The arrays have 4 * vectors elements.
extern "C" __global__ void __launch_bounds__(256)
    add_rows(float* x, const __nv_bfloat16* __restrict__ added,
             long long vectors) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= vectors) return;
  const Float4 a = reinterpret_cast<const Float4*>(x)[i];
  const Bf16x4 b = reinterpret_cast<const Bf16x4*>(added)[i];
  float sum[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) sum[k] = a.at[k] + to_float(b.at[k]);
  store(x + 4 * i, sum);
}

// out = silu(gate), rounded to bf16. A row of gate_up holds `width` of gate,
// then `width` of up; out is contiguous. Grid: parts of a row, rows.
extern "C" __global__ void __launch_bounds__(256)
    silu_rows(const __nv_bfloat16* __restrict__ gate_up, __nv_bfloat16* out,
              int width) {
  const int c = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
  if (c >= width) return;
  const long long row = blockIdx.y;
  const Bf16x8 gate =
      *reinterpret_cast<const Bf16x8*>(gate_up + row * 2 * width + c);
  float y[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const float x = to_float(gate.at[k]);
    y[k] = __fdividef(x, 1.0f + expf(-x));
  }
  store(out + row * width + c, y);
}

// out *= up, both in bf16; rows and grid as for silu_rows.
extern "C" __global__ void __launch_bounds__(256)
    multiply_rows(const __nv_bfloat16* __restrict__ gate_up, __nv_bfloat16* out,
                  int width) {
  const int c = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
  if (c >= width) return;
  const long long row = blockIdx.y;
  const Bf16x8 up =
      *reinterpret_cast<const Bf16x8*>(gate_up + (row * 2 + 1) * width + c);
  const Bf16x8 x = *reinterpret_cast<const Bf16x8*>(out + row * width + c);
  float y[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) y[k] = to_float(x.at[k]) * to_float(up.at[k]);
  store(out + row * width + c, y);
}
