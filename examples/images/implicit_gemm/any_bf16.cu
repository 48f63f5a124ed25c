// Convolution in bf16, NHWC, of whatever the TMA's im2col mode cannot express:
// groups, strides above 8, channels that are no multiple of 8. One thread per
// result, sums in fp32.
//
//   any_bf16  the kernel
//
// requires: sm_80
#include <cuda_bf16.h>

#include "images/shape.cuh"

extern "C" __global__ void any_bf16(const Shape s,
                                    const __nv_bfloat16* __restrict__ images,
                                    const __nv_bfloat16* __restrict__ weights,
                                    __nv_bfloat16* __restrict__ results) {
  const long long all = (long long)s.groups * s.filters;
  const long long count =
      (long long)s.images * s.out_height * s.out_width * all;
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const long long filter = i % all, pixel = i / all;
  const long long group = filter / s.filters;
  const int column = (int)(pixel % s.out_width),
            row = (int)(pixel / s.out_width % s.out_height);
  const long long image = pixel / s.out_width / s.out_height;
  float sum = 0;
  for (int r = 0; r < s.rows; ++r) {
    const long long y =
        (long long)row * s.stride_y - s.pad_y + (long long)r * s.dilation_y;
    if (y < 0 || y >= s.height) continue;
    for (int c = 0; c < s.columns; ++c) {
      const long long x = (long long)column * s.stride_x - s.pad_x +
                          (long long)c * s.dilation_x;
      if (x < 0 || x >= s.width) continue;
      const __nv_bfloat16* const a = images +
                                     ((image * s.height + y) * s.width + x) *
                                         (s.groups * (long long)s.channels) +
                                     group * s.channels;
      const __nv_bfloat16* const b =
          weights + ((filter * s.rows + r) * s.columns + c) * s.channels;
      for (int k = 0; k < s.channels; ++k)
        sum += __bfloat162float(a[k]) * __bfloat162float(b[k]);
    }
  }
  results[i] = __float2bfloat16(sum);
}
