// An affine warp by the inverse map: each pixel of the output asks where in the
// image it comes from. Images are uint8, height x width x 3.
//
//   warp_forward  the other way: each pixel of the image is sent to where it
//                 goes. Some pixels of the output get none
//   warp_float<>  bilinear, a map in fp32
//   warp<>        TAPS 1: nearest, 2: bilinear, 4: cubic; a map in integers
//
// Blocks may have any shape.
//
// @instance warp_float<CONSTANT>
// @instance warp<1, CONSTANT>
// @instance warp<2, CONSTANT>
// @instance warp<2, REPLICATE>
// @instance warp<2, REFLECT_101>
// @instance warp<2, WRAP>
// @instance warp<4, CONSTANT>
// @instance warp<4, REFLECT_101>
#include "map.cuh"
#include "sample.cuh"

// --8<-- [start:forward]
// m: where a pixel of the image goes. out has to hold the border already.
extern "C" __global__ void warp_forward(unsigned char* __restrict__ out,
                                        const unsigned char* __restrict__ image,
                                        Matrix m, int out_height, int out_width,
                                        int height, int width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const float column = rintf(m.a * x + m.b * y + m.c);
  const float row = rintf(m.d * x + m.e * y + m.f);
  if (!(column >= 0 && column < out_width && row >= 0 && row < out_height))
    return;
  const long long to = (long long)row * out_width + (long long)column;
  const long long from = (long long)y * width + x;
  for (int c = 0; c < 3; ++c) out[3 * to + c] = image[3 * from + c];
}
// --8<-- [end:forward]

// --8<-- [start:warp_float]
// Positions at or beyond 2^31 end at 2^31: border, in any case.
template <int border>
__global__ void warp_float(unsigned char* __restrict__ out,
                           const unsigned char* __restrict__ image, Matrix m,
                           int out_height, int out_width, int height, int width,
                           float value) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= out_width || y >= out_height) return;
  const float column = m.a * x + m.b * y + m.c;
  const float row = m.d * x + m.e * y + m.f;
  const float left = floorf(column), top = floorf(row);
  float down[2], across[2], sum[3];
  weigh(row - top, down);
  weigh(column - left, across);
  sample<2, border>(image, height, width, (int)top, (int)left, down, across,
                    value, sum);
  const long long to = 3 * ((long long)y * out_width + x);
  for (int c = 0; c < 3; ++c) out[to + c] = byte(sum[c]);
}
// --8<-- [end:warp_float]

// --8<-- [start:warp]
// TAPS 1 takes the pixel whose center is nearest, of two equally near ones the
// one behind.
template <int TAPS, int border>
__global__ void warp(unsigned char* __restrict__ out,
                     const unsigned char* __restrict__ image, Fixed m,
                     int out_height, int out_width, int height, int width,
                     float value) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= out_width || y >= out_height) return;
  const long long half = TAPS == 1 ? 1LL << 31 : 0;
  const Position column = split(along(m.a, m.b, m.c, x, y) + half);
  const Position row = split(along(m.d, m.e, m.f, x, y) + half);
  float down[TAPS], across[TAPS], sum[3];
  weigh(row.between, down);
  weigh(column.between, across);
  const int before = TAPS == 4 ? 1 : 0;
  sample<TAPS, border>(image, height, width, row.whole - before,
                       column.whole - before, down, across, value, sum);
  const long long to = 3 * ((long long)y * out_width + x);
  for (int c = 0; c < 3; ++c) out[to + c] = byte(sum[c]);
}
// --8<-- [end:warp]
