// A value of an image between its pixels, and beyond its borders.
#pragma once

// --8<-- [start:border]
// What lies beyond the image of n pixels, abcd: i is the index of a pixel, and
// CONSTANT gives -1 for 'none'.
enum Border { CONSTANT, REPLICATE, REFLECT_101, WRAP };

template <int border>
__device__ __forceinline__ int inside(int i, int n) {
  if (i >= 0 && i < n) return i;
  if (border == REPLICATE) return i < 0 ? 0 : n - 1;  // aaa|abcd|ddd
  if (border == WRAP) {                               // bcd|abcd|abc
    const int r = i % n;
    return r < 0 ? r + n : r;
  }
  if (border == REFLECT_101) {  // dcb|abcd|cba
    if (n == 1) return 0;
    const int r = abs(i) % (2 * n - 2);
    return r < n ? r : 2 * n - 2 - r;
  }
  return -1;
}
// --8<-- [end:border]

// --8<-- [start:weights]
// Weights of TAPS pixels in a row: t, from 0 to 1, lies behind the first of 2,
// or the second of 4.
template <int TAPS>
__device__ __forceinline__ void weigh(float t, float (&w)[TAPS]) {
  if constexpr (TAPS == 1) {
    w[0] = 1;
  } else if constexpr (TAPS == 2) {
    w[0] = 1 - t, w[1] = t;
  } else {  // cubic, of Keys; OpenCV and PyTorch have the same a
    const float a = -0.75f, s = 1 - t;
    w[0] = a * t * s * s;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * s - (a + 3)) * s * s + 1;
    w[3] = a * s * t * t;
  }
}
// --8<-- [end:weights]

// --8<-- [start:byte]
// The nearest integer, of two equally near ones the even one; cubic weights
// lead beyond 0 and 255.
__device__ __forceinline__ unsigned char byte(float v) {
  return (unsigned char)min(max(__float2int_rn(v), 0), 255);
}
// --8<-- [end:byte]

// --8<-- [start:sample]
// The sum over TAPS x TAPS pixels, the first of them in row y and column x.
template <int TAPS, int border>
__device__ __forceinline__ void sample(const unsigned char* __restrict__ image,
                                       int height, int width, int y, int x,
                                       const float (&down)[TAPS],
                                       const float (&across)[TAPS], float value,
                                       float (&sum)[3]) {
  sum[0] = sum[1] = sum[2] = 0;
#pragma unroll
  for (int j = 0; j < TAPS; ++j) {
    const int row = inside<border>(y + j, height);
#pragma unroll
    for (int i = 0; i < TAPS; ++i) {
      const int column = inside<border>(x + i, width);
      const float weight = down[j] * across[i];
      const bool here = border != CONSTANT || (row >= 0 && column >= 0);
      const long long at = 3 * ((long long)row * width + column);
#pragma unroll
      for (int c = 0; c < 3; ++c)
        sum[c] = fmaf(weight, here ? image[at + c] : value, sum[c]);
    }
  }
}
// --8<-- [end:sample]
