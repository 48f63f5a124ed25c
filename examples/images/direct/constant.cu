// Rung 2: the weights in constant memory, which holds 64 KB of them: so many
// filters as fit, and a launch for each so many.
//
//   held             the weights of these filters, where the host copies them
//   direct_constant  the kernel
//
// Arrays as in naive.cu. All threads of a block have the same filter, so that
// they read the same weight at the same time.
//
// requires: sm_75
#include "images/shape.cuh"

// --8<-- [start:kernel]
constexpr int HELD = 16384;  // words: all of constant memory
__constant__ float held[HELD];

// Filters first, first + 1 ..., one for each row of blocks (grid.y); grid.x has
// a thread for each place of a result in all images.
extern "C" __global__ void direct_constant(const Shape s, const int first,
                                           const float* __restrict__ images,
                                           float* __restrict__ results) {
  const long long pixel = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (pixel >= (long long)s.images * plane(s)) return;
  const int place = (int)(pixel % plane(s)), filter = first + blockIdx.y;
  const long long image = pixel / plane(s);
  const int top = place / s.out_width * s.stride_y - s.pad_y,
            left = place % s.out_width * s.stride_x - s.pad_x;
  const float* const from = images + (image * s.groups + filter / s.filters) *
                                         s.channels *
                                         ((long long)s.height * s.width);
  int weight = blockIdx.y * s.channels * window(s);
  float sum = 0;
  for (int c = 0; c < s.channels; ++c) {
    for (int r = 0; r < s.rows; ++r) {
      const int y = top + r * s.dilation_y;
      for (int q = 0; q < s.columns; ++q, ++weight) {
        const int x = left + q * s.dilation_x;
        if (y >= 0 && y < s.height && x >= 0 && x < s.width)
          sum += from[(c * s.height + y) * s.width + x] * held[weight];
      }
    }
  }
  results[(image * s.groups * s.filters + filter) * plane(s) + place] = sum;
}
// --8<-- [end:kernel]
