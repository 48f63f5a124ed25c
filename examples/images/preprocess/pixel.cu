// One kernel from photographs to the input of a network: it resizes an image
// so that it fits, centers it, swaps its channels, normalizes, and writes the
// planes of a batch in bf16. A thread makes a pixel of the output.
#include "letterbox.cuh"

#ifndef BORDER
#define BORDER 1  // 1: pixels around the image are written, 0: left alone
#endif

// --8<-- [start:pixel]
__device__ __forceinline__ float between(float a, float b, float weight) {
  return fmaf(weight, b - a, a);
}

// out: a batch of [3][height][width], one for each image.
extern "C" __global__ void __launch_bounds__(ACROSS* DOWN)
    letterbox_pixel(const unsigned char* __restrict__ pixels,
                    const Image* __restrict__ images, Normalize scale,
                    int height, int width, __nv_bfloat16* __restrict__ out) {
  const int x = blockIdx.x * ACROSS + threadIdx.x;
  const int y = blockIdx.y * DOWN + threadIdx.y;
  if (x >= width || y >= height) return;
  const Image image = images[blockIdx.z];
  float v[3] = {scale.border, scale.border, scale.border};
  const bool in = inside(x, image.left, image.new_width) &&
                  inside(y, image.top, image.new_height);
  if (!in && !BORDER) return;
  if (in) {
    const Tap column = tap(x - image.left, (float)image.across, image.width);
    const Tap row = tap(y - image.top, (float)image.down, image.height);
    const long long first = (long long)row.lo * image.width + column.lo;
    const unsigned char* const up = pixels + image.first + 3 * first;
    // What has no weight is not read: behind it the image may end.
    const unsigned char* const down =
        up + (row.weight > 0 ? 3LL * image.width : 0);
    const int right = column.weight > 0 ? 3 : 0;
#pragma unroll
    for (int c = 0; c < 3; ++c)
      v[c] =
          between(between(up[c], up[c + right], column.weight),
                  between(down[c], down[c + right], column.weight), row.weight);
  }
  const long long plane = (long long)height * width;
  __nv_bfloat16* const to = place(out, blockIdx.z, y, x, height, width);
#pragma unroll
  for (int c = 0; c < 3; ++c)
    to[c * plane] = __float2bfloat16_rn(
        fmaf(v[SWAP ? 2 - c : c], scale.by[c], scale.plus[c]));
}
// --8<-- [end:pixel]
