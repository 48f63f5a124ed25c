// Depthwise convolution with any window, stride, padding and dilation: one
// result per thread, sums in fp32.
//
//   wide, narrow  bf16 and fp32
//   any           the kernel
//
// LAST: the channel is the last index, as in channels.cu; otherwise as in
// planes.cu.
//
// requires: sm_80
// @instance any<float,false>
// @instance any<__nv_bfloat16,true>
#include <cuda_bf16.h>

#include "images/shape.cuh"

__device__ __forceinline__ float wide(float x) { return x; }
__device__ __forceinline__ float wide(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ __forceinline__ void narrow(float* to, float x) { *to = x; }
__device__ __forceinline__ void narrow(__nv_bfloat16* to, float x) {
  *to = __float2bfloat16(x);
}

template <class T, bool LAST>
__global__ void any(const Shape s, const T* __restrict__ images,
                    const T* __restrict__ weights, T* __restrict__ results) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)s.images * s.groups * plane(s)) return;
  long long rest = i;
  auto next = [&](int n) {
    const int index = (int)(rest % n);
    rest /= n;
    return index;
  };
  int channel = LAST ? next(s.groups) : 0;
  const int x = next(s.out_width), y = next(s.out_height);
  if (!LAST) channel = next(s.groups);
  // From one image, pixel and channel to the next.
  const long long pixels = (long long)s.height * s.width;
  const int step = LAST ? s.groups : 1;
  const T* const from =
      images + rest * s.groups * pixels + (LAST ? channel : channel * pixels);
  const T* const filter = weights + (long long)channel * window(s);
  float sum = 0;
  for (int r = 0; r < s.rows; ++r) {
    const int row = y * s.stride_y - s.pad_y + r * s.dilation_y;
    if (row < 0 || row >= s.height) continue;
    for (int c = 0; c < s.columns; ++c) {
      const int column = x * s.stride_x - s.pad_x + c * s.dilation_x;
      if (column < 0 || column >= s.width) continue;
      sum += wide(from[((long long)row * s.width + column) * step]) *
             wide(filter[r * s.columns + c]);
    }
  }
  narrow(results + i, sum);
}
