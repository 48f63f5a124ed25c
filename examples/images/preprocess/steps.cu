// The same in four launches, each of which does one thing. Between them the
// batch lies in memory. A thread has a pixel of the output.
#include "letterbox.cuh"

// --8<-- [start:steps]
__device__ __forceinline__ float between(float a, float b, float weight) {
  return fmaf(weight, b - a, a);
}

// Resizes into the middle; to is uint8, [image][height][width][3].
extern "C" __global__ void __launch_bounds__(ACROSS* DOWN)
    step_resize(const unsigned char* __restrict__ pixels,
                const Image* __restrict__ images, int border, int height,
                int width, unsigned char* __restrict__ to) {
  const int x = blockIdx.x * ACROSS + threadIdx.x;
  const int y = blockIdx.y * DOWN + threadIdx.y;
  if (x >= width || y >= height) return;
  const Image image = images[blockIdx.z];
  const bool in = inside(x, image.left, image.new_width) &&
                  inside(y, image.top, image.new_height);
  const Tap column = tap(x - image.left, (float)image.across, image.width);
  const Tap row = tap(y - image.top, (float)image.down, image.height);
  const long long first = (long long)row.lo * image.width + column.lo;
  const unsigned char* const up = pixels + image.first + 3 * first;
  const unsigned char* const down =
      up + (row.weight > 0 ? 3LL * image.width : 0);
  const int right = column.weight > 0 ? 3 : 0;
  to += ((blockIdx.z * (long long)height + y) * width + x) * 3;
  for (int c = 0; c < 3; ++c)
    to[c] =
        in ? __float2int_rn(between(
                 between(up[c], up[c + right], column.weight),
                 between(down[c], down[c + right], column.weight), row.weight))
           : border;
}

// Exchanges the first and the last channel of n pixels.
extern "C" __global__ void step_swap(const unsigned char* __restrict__ from,
                                     unsigned char* __restrict__ to,
                                     long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= n) return;
  for (int c = 0; c < 3; ++c) to[3 * i + c] = from[3 * i + 2 - c];
}

extern "C" __global__ void step_normalize(
    const unsigned char* __restrict__ from, float* __restrict__ to,
    Normalize scale, long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= n) return;
  for (int c = 0; c < 3; ++c)
    to[3 * i + c] = fmaf(from[3 * i + c], scale.by[c], scale.plus[c]);
}

// [image][pixel][3] to [image][3][pixel], in bf16. plane: pixels of an image.
extern "C" __global__ void step_planes(const float* __restrict__ from,
                                       __nv_bfloat16* __restrict__ to,
                                       long long plane) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= plane) return;
  from += blockIdx.y * 3 * plane, to += blockIdx.y * 3 * plane;
  for (int c = 0; c < 3; ++c)
    to[i + c * plane] = __float2bfloat16_rn(from[3 * i + c]);
}
// --8<-- [end:steps]
