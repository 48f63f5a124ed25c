// Resizing, a thread for each pixel of the output, in a grid over it. Images
// are uint8, height x width x 3.
//
//   resize_nearest   the pixel in which the center lies
//   resize_bilinear  between the four pixels around the center
//   letterbox        as bilinear, into a part of the output; else the border
//
// Blocks may have any shape.
#include "taps.cuh"

// --8<-- [start:pixel]
// The byte at which a pixel begins.
__device__ __forceinline__ long long pixel(int y, int x, int width) {
  return ((long long)y * width + x) * 3;
}
// --8<-- [end:pixel]

// --8<-- [start:nearest]
extern "C" __global__ void resize_nearest(
    unsigned char* __restrict__ out, const unsigned char* __restrict__ image,
    Axis down, Axis across) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= across.to || y >= down.to) return;
  const long long to = pixel(y, x, across.to);
  const long long from = pixel(nearest(y, down), nearest(x, across), across.n);
  for (int c = 0; c < 3; ++c) out[to + c] = image[from + c];
}
// --8<-- [end:nearest]

// --8<-- [start:blend]
// Channel c between four pixels, rounded to the nearest integer, of two equally
// near ones to the even one.
__device__ __forceinline__ unsigned char blend(
    const unsigned char* __restrict__ image, int width, Tap row, Tap column,
    int c) {
  const float up =
      between(image[pixel(row.lo, column.lo, width) + c],
              image[pixel(row.lo, column.hi, width) + c], column.weight);
  const float down =
      between(image[pixel(row.hi, column.lo, width) + c],
              image[pixel(row.hi, column.hi, width) + c], column.weight);
  return (unsigned char)__float2int_rn(between(up, down, row.weight));
}
// --8<-- [end:blend]

// --8<-- [start:bilinear]
extern "C" __global__ void resize_bilinear(
    unsigned char* __restrict__ out, const unsigned char* __restrict__ image,
    Axis down, Axis across) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= across.to || y >= down.to) return;
  const Tap row = tap(y, down), column = tap(x, across);
  const long long to = pixel(y, x, across.to);
  for (int c = 0; c < 3; ++c)
    out[to + c] = blend(image, across.n, row, column, c);
}
// --8<-- [end:bilinear]

// --8<-- [start:letterbox]
// The image fills down.to rows and across.to columns of the output, from row
// `top` and column `left` on. Every pixel of the output is written.
extern "C" __global__ void letterbox(unsigned char* __restrict__ out,
                                     const unsigned char* __restrict__ image,
                                     Axis down, Axis across, int height,
                                     int width, int top, int left, int border) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const long long to = pixel(y, x, width);
  const bool inside = x >= left && x - left < across.to &&  //
                      y >= top && y - top < down.to;
  if (!inside) {
    for (int c = 0; c < 3; ++c) out[to + c] = border;
    return;
  }
  const Tap row = tap(y - top, down), column = tap(x - left, across);
  for (int c = 0; c < 3; ++c)
    out[to + c] = blend(image, across.n, row, column, c);
}
// --8<-- [end:letterbox]
