// What the kernels of this chapter share: where an image goes, which of its
// pixels a pixel of the output needs, and the store of neighbors.
#pragma once

#include <cuda_bf16.h>

#ifndef SWAP
#define SWAP 1  // 1: the first channel is written last, 0: first
#endif
#ifndef DOWN
#define DOWN 8  // threads of a block, downwards; 32 across
#endif
#ifndef CHANNELS_LAST
#define CHANNELS_LAST 0  // 1: [height][width][3], 0: [3][height][width]
#endif

constexpr int ACROSS = 32;  // threads of a block

// --8<-- [start:image]
// Images are uint8, three channels for each pixel, row after row, one image
// behind the other.
struct alignas(16) Image {
  long long first;            // its first byte
  int height, width;          // in pixels
  int top, left;              // where its part of the output begins
  int new_height, new_width;  // of that part
  double down, across;        // source pixels for one of the output
};
// --8<-- [end:image]

// --8<-- [start:normalize]
// What a byte becomes: byte * by[c] + plus[c], c in the order of the output.
struct Normalize {
  float by[3], plus[3];
  float border;  // a byte's value around the image
};
// --8<-- [end:normalize]

// --8<-- [start:tap]
// The pixels lo and lo + 1 of n, and the weight of the second. Centers of
// pixels lie at one half.
struct Tap {
  int lo;
  float weight;
};

template <typename Number>
__device__ __forceinline__ Tap tap(int x, Number step, int n) {
  Number at = (x + Number(0.5)) * step - Number(0.5);
  at = at < 0 ? 0 : at > n - 1 ? n - 1 : at;
  const int lo = (int)at;
  return {lo, (float)(at - lo)};  // at the last pixel it is 0
}
// --8<-- [end:tap]

__device__ __forceinline__ bool inside(int at, int begin, int count) {
  return (unsigned)(at - begin) < (unsigned)count;
}

// --8<-- [start:store]
// Where column x of row y of an image begins in `out`.
__device__ __forceinline__ __nv_bfloat16* place(__nv_bfloat16* out, int image,
                                                int y, int x, int height,
                                                int width) {
  const long long plane = (long long)height * width;
  const long long pixel = (long long)y * width + x;
  return out + (CHANNELS_LAST ? 3 * (image * plane + pixel)
                              : 3 * image * plane + pixel);
}

template <int count>
struct alignas(2 * count) Vector {
  __nv_bfloat16 at[count];
};

// Writes `count` neighbors there. v: of each channel, from neighbor `from` on.
template <int count, int all>
__device__ __forceinline__ void store(const float (&v)[3][all], int from,
                                      __nv_bfloat16* to, long long plane) {
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    Vector<count> bits;
#pragma unroll
    for (int p = 0; p < count; ++p) {
      const int e = k * count + p;  // in the order of [count][3]
      bits.at[p] = CHANNELS_LAST ? __float2bfloat16_rn(v[e % 3][from + e / 3])
                                 : __float2bfloat16_rn(v[k][from + p]);
    }
    *reinterpret_cast<Vector<count>*>(to) = bits;
    to += CHANNELS_LAST ? count : plane;
  }
}
// --8<-- [end:store]
