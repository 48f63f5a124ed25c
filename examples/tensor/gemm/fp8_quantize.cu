// Numbers in fp32 or bf16 to e4m3, and the scales that belong to them: what is
// stored, times its scale, is about what it was before. e4m3 reaches to 448, so
// the scale of some numbers is the largest of them / 448.
//
//   scale_for                    the scale of numbers
//   convert, load                converts and loads four numbers
//   largest_of, largest_in_warp  the largest of some numbers
//   largest                      the kernel that finds the largest of all
//   quantize_all                 the kernel with one scale for all numbers
//   quantize_blocks              the kernel with a scale for each block
//
// requires: sm_80
#include <cuda_fp8.h>

#include "results.cuh"

// --8<-- [start:scale]
// The scale of numbers of which `largest` is the largest. Zeros have a scale,
// too: the smallest normal number, whose reciprocal is finite.
__device__ __forceinline__ float scale_for(float largest) {
  return fmaxf(largest / 448.0f, 0x1p-126f);
}

// Four numbers times `by`, rounded to the nearest; what is larger than 448
// becomes 448.
__device__ __forceinline__ unsigned convert(const float (&x)[4], float by) {
  unsigned short two[2];
  for (int i = 0; i < 2; ++i)
    two[i] =
        __nv_cvt_float2_to_fp8x2(make_float2(x[2 * i] * by, x[2 * i + 1] * by),
                                 __NV_SATFINITE, __NV_E4M3);
  return two[0] | (unsigned)two[1] << 16;
}
// --8<-- [end:scale]

// Four numbers of type In, bf16 or float, by one instruction.
template <class In>
__device__ __forceinline__ void load(const In* from, float (&x)[4]) {
  struct alignas(4 * sizeof(In)) {
    In at[4];
  } const v = *reinterpret_cast<const decltype(v)*>(from);
#pragma unroll
  for (int i = 0; i < 4; ++i) x[i] = as_float(v.at[i]);
}

__device__ __forceinline__ float largest_of(const float (&x)[4]) {
  return fmaxf(fmaxf(fabsf(x[0]), fabsf(x[1])),
               fmaxf(fabsf(x[2]), fabsf(x[3])));
}

__device__ __forceinline__ float largest_in_warp(float x) {
#pragma unroll
  for (int away = 16; away > 0; away /= 2)
    x = fmaxf(x, __shfl_xor_sync(~0u, x, away));
  return x;
}

// --8<-- [start:tensor]
// The largest |x| of 4 * fours numbers. *out is 0 before. Floats that are not
// negative have the same order as their bits. Grid of this and the next: any
// number of blocks.
template <class In>
__global__ void __launch_bounds__(256)
    largest(const In* __restrict__ x, float* out, long long fours) {
  float found = 0.0f;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < fours;
       i += gridDim.x * 256ll) {
    float v[4];
    load(x + 4 * i, v);
    found = fmaxf(found, largest_of(v));
  }
  found = largest_in_warp(found);
  if (threadIdx.x % 32 == 0)
    atomicMax(reinterpret_cast<int*>(out), __float_as_int(found));
}

// Quantize with one scale for all numbers, and write the scale, too.
template <class In>
__global__ void __launch_bounds__(256)
    quantize_all(const In* __restrict__ x, const float* __restrict__ largest,
                 unsigned* __restrict__ out, float* __restrict__ scale,
                 long long fours) {
  const float found = scale_for(*largest), by = 1.0f / found;
  if (blockIdx.x == 0 && threadIdx.x == 0) *scale = found;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < fours;
       i += gridDim.x * 256ll) {
    float v[4];
    load(x + 4 * i, v);
    out[i] = convert(v, by);
  }
}
// --8<-- [end:tensor]

// --8<-- [start:blocks]
// A block quantizes 128 x 128 numbers; each of its eight warps has 16 rows.
// `columns` is a multiple of 4. TILE: whether there is one scale for all of
// these numbers, at scales[row / 128, column / 128]; otherwise there is one for
// each of the rows, at scales[column / 128, row], where `pitch` is the length
// of such a line: `rows`, rounded up to a multiple of 4. Grid: x over the
// columns, y over the rows.
template <class In, bool TILE>
__global__ void __launch_bounds__(256)
    quantize_blocks(const In* __restrict__ x, unsigned* __restrict__ out,
                    float* __restrict__ scales, int rows, int columns,
                    int pitch) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int top = blockIdx.y * 128 + warp * 16,
            column = blockIdx.x * 128 + lane * 4;
  float v[16][4] = {}, most[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    if (top + i < rows && column < columns)
      load(x + (size_t)(top + i) * columns + column, v[i]);
    most[i] = largest_in_warp(largest_of(v[i]));
  }
  if constexpr (TILE) {
    __shared__ float of_warp[8];
    for (int i = 1; i < 16; ++i) most[0] = fmaxf(most[0], most[i]);
    of_warp[warp] = most[0];
    __syncthreads();
    most[0] = largest_in_warp(of_warp[lane % 8]);
    for (int i = 1; i < 16; ++i) most[i] = most[0];
    if (threadIdx.x == 0)
      scales[blockIdx.y * gridDim.x + blockIdx.x] = scale_for(most[0]);
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    if (top + i >= rows) break;
    const float scale = scale_for(most[i]);
    if (!TILE && lane == 0)
      scales[(size_t)blockIdx.x * pitch + top + i] = scale;
    if (column < columns)
      out[((size_t)(top + i) * columns + column) / 4] =
          convert(v[i], 1.0f / scale);
  }
}
// --8<-- [end:blocks]

// Instances that are compiled by the tests:
// @instance largest<__nv_bfloat16>
// @instance largest<float>
// @instance quantize_all<__nv_bfloat16>
// @instance quantize_all<float>
// @instance quantize_blocks<__nv_bfloat16,false>
// @instance quantize_blocks<float,true>
