// What claims.py measures.
//
//   notes_im2col  im2col as CUDATutorial 12/03 has it: a thread for each place
//                 of each channel and image
//
// requires: sm_75
#include "images/shape.cuh"

// --8<-- [start:im2col]
// `count` places of all channels and images; blocks of 512 threads.
extern "C" __global__ void notes_im2col(const Shape s, const int count,
                                        const float* __restrict__ from,
                                        float* __restrict__ matrix) {
  const int all = s.groups * s.channels;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += blockDim.x * gridDim.x) {
    const int x = i % s.out_width, y = i / s.out_width % s.out_height;
    const int channel = i / plane(s) % all, image = i / plane(s) / all;
    const int top = y * s.stride_y - s.pad_y, left = x * s.stride_x - s.pad_x;
    // The first word of the window's column: row channel * window, and a column
    // for each place of each image.
    float* to = matrix +
                ((long long)channel * window(s) * s.images + image) * plane(s) +
                y * s.out_width + x;
    const float* const at = from + ((long long)image * all + channel) *
                                       ((long long)s.height * s.width);
    for (int r = 0; r < s.rows; ++r) {
      for (int q = 0; q < s.columns; ++q) {
        const int down = top + r * s.dilation_y,
                  right = left + q * s.dilation_x;
        *to = down >= 0 && right >= 0 && down < s.height && right < s.width
                  ? at[down * s.width + right]
                  : 0.0f;
        to += (long long)plane(s) * s.images;
      }
    }
  }
}
// --8<-- [end:im2col]
