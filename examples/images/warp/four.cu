// The same warp on images of four bytes a pixel, height x width x 4: a load
// brings a whole pixel, and a texture can hold them. Bilinear.
//
//   pad            three bytes a pixel to four, the last one 255
//   warp_four<>    plain loads
//   warp_points    four reads of a texture, weights of our own
//   warp_filtered  one read of a texture, which weighs by itself, with 8 bits
//   between        n reads of a texture, from its first pixel to the second
//
// Blocks may have any shape.
//
// @instance warp_four<CONSTANT>
// @instance warp_four<REPLICATE>
#include "map.cuh"
#include "sample.cuh"

// --8<-- [start:pad]
// pitch: pixels from one row of `out` to the next.
extern "C" __global__ void pad(uchar4* __restrict__ out,
                               const unsigned char* __restrict__ image,
                               int height, int width, long long pitch) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const long long from = 3 * ((long long)y * width + x);
  out[y * pitch + x] =
      make_uchar4(image[from], image[from + 1], image[from + 2], 255);
}
// --8<-- [end:pad]

// --8<-- [start:four]
__device__ __forceinline__ float4 number(uchar4 p) {
  return make_float4(p.x, p.y, p.z, p.w);
}

__device__ __forceinline__ float4 add(float4 sum, float weight, float4 p) {
  return make_float4(fmaf(weight, p.x, sum.x), fmaf(weight, p.y, sum.y),
                     fmaf(weight, p.z, sum.z), fmaf(weight, p.w, sum.w));
}

__device__ __forceinline__ uchar4 bytes(float4 v) {
  return make_uchar4(byte(v.x), byte(v.y), byte(v.z), byte(v.w));
}

template <int border>
__global__ void warp_four(uchar4* __restrict__ out,
                          const uchar4* __restrict__ image, long long pitch,
                          Fixed m, int out_height, int out_width, int height,
                          int width, float value) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= out_width || y >= out_height) return;
  const Position column = split(along(m.a, m.b, m.c, x, y));
  const Position row = split(along(m.d, m.e, m.f, x, y));
  float down[2], across[2];
  weigh(row.between, down);
  weigh(column.between, across);
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const int r = inside<border>(row.whole + j, height);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int c = inside<border>(column.whole + i, width);
      const bool here = border != CONSTANT || (r >= 0 && c >= 0);
      const float4 p = here ? number(image[r * pitch + c])
                            : make_float4(value, value, value, value);
      sum = add(sum, down[j] * across[i], p);
    }
  }
  out[(long long)y * out_width + x] = bytes(sum);
}
// --8<-- [end:four]

// --8<-- [start:points]
// texture: bytes as integers, unfiltered. What lies beyond the image is as the
// texture was made. A texture's pixel x is the interval from x to x + 1.
extern "C" __global__ void warp_points(uchar4* __restrict__ out,
                                       unsigned long long texture, Fixed m,
                                       int out_height, int out_width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= out_width || y >= out_height) return;
  const Position column = split(along(m.a, m.b, m.c, x, y));
  const Position row = split(along(m.d, m.e, m.f, x, y));
  float down[2], across[2];
  weigh(row.between, down);
  weigh(column.between, across);
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
  for (int j = 0; j < 2; ++j)
#pragma unroll
    for (int i = 0; i < 2; ++i)
      sum = add(sum, down[j] * across[i],
                number(tex2D<uchar4>(texture, column.whole + i + 0.5f,
                                     row.whole + j + 0.5f)));
  out[(long long)y * out_width + x] = bytes(sum);
}
// --8<-- [end:points]

// --8<-- [start:filtered]
// texture: bytes as numbers from 0 to 1, filtered.
extern "C" __global__ void warp_filtered(uchar4* __restrict__ out,
                                         unsigned long long texture, Fixed m,
                                         int out_height, int out_width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= out_width || y >= out_height) return;
  const Position column = split(along(m.a, m.b, m.c, x, y));
  const Position row = split(along(m.d, m.e, m.f, x, y));
  const float4 p = tex2D<float4>(texture, column.whole + column.between + 0.5f,
                                 row.whole + row.between + 0.5f);
  out[(long long)y * out_width + x] =
      bytes(make_float4(255 * p.x, 255 * p.y, 255 * p.z, 255 * p.w));
}
// --8<-- [end:filtered]

// --8<-- [start:between]
extern "C" __global__ void between(float* __restrict__ out,
                                   unsigned long long texture, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = 255 * tex2D<float4>(texture, 0.5f + (float)i / n, 0.5f).x;
}
// --8<-- [end:between]
