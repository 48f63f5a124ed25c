// Rung 1: one output per thread.
//
//   direct_naive  the kernel
//
// Images and results: [image][channel][row][column]. Weights:
// [filter][channel of the group][row][column]. Any block, one thread for each
// result.
//
// requires: sm_75
#include "images/shape.cuh"

// --8<-- [start:kernel]
extern "C" __global__ void direct_naive(const Shape s,
                                        const float* __restrict__ images,
                                        const float* __restrict__ weights,
                                        float* __restrict__ results) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const long long filters = (long long)s.groups * s.filters;
  if (i >= s.images * filters * plane(s)) return;
  const int place = (int)(i % plane(s));
  const long long filter = i / plane(s) % filters;
  const long long image = i / plane(s) / filters;
  // The window's first word may lie outside the image.
  const int top = place / s.out_width * s.stride_y - s.pad_y,
            left = place % s.out_width * s.stride_x - s.pad_x;
  const float* const from = images + (image * s.groups + filter / s.filters) *
                                         s.channels *
                                         ((long long)s.height * s.width);
  const float* weight = weights + filter * s.channels * window(s);
  float sum = 0;
  for (int c = 0; c < s.channels; ++c) {
    for (int r = 0; r < s.rows; ++r) {
      const int y = top + r * s.dilation_y;
      for (int q = 0; q < s.columns; ++q, ++weight) {
        const int x = left + q * s.dilation_x;
        if (y >= 0 && y < s.height && x >= 0 && x < s.width)
          sum += from[(c * s.height + y) * s.width + x] * *weight;
      }
    }
  }
  results[i] = sum;
}
// --8<-- [end:kernel]
