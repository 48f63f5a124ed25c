// Which pixels of an image a pixel of the output is made of.
//
// An axis of n pixels becomes one of `to` pixels. Pixel x is the interval from
// x to x + 1, its center x + 1/2. The center of an output pixel lies, in pixels
// of the image, at (x + 1/2) * n / to: a fraction, which integers hold exactly.
#pragma once

// --8<-- [start:axis]
struct Axis {
  int n, to;    // pixels of the image, of the output
  float scale;  // n / to
  float part;   // 1 / (2 * to)
};
// --8<-- [end:axis]

// --8<-- [start:divided]
// a / b, rounded down, and the rest. guess: off by one at most.
__device__ __forceinline__ int divided(long long a, int b, int guess,
                                       int* rest) {
  long long r = a - (long long)guess * b;
  if (r < 0) {
    r += b, --guess;
  } else if (r >= b) {
    r -= b, ++guess;
  }
  *rest = (int)r;
  return guess;
}
// --8<-- [end:divided]

// --8<-- [start:nearest]
// The pixel in which the center lies.
__device__ __forceinline__ int nearest(int x, Axis axis) {
  int rest;
  return divided((2LL * x + 1) * axis.n, 2 * axis.to,
                 (int)((x + 0.5f) * axis.scale), &rest);
}
// --8<-- [end:nearest]

// --8<-- [start:tap]
// The pixels lo and hi, and the weight of hi; that of lo is 1 - weight.
struct Tap {
  int lo, hi;
  float weight;
};

// The pixels whose centers lie around the center. Beyond the first and the last
// center, the first and the last pixel go on.
__device__ __forceinline__ Tap tap(int x, Axis axis) {
  const long long at = (2LL * x + 1) * axis.n - axis.to;  // 2 * to: one pixel
  if (at <= 0) return {0, 0, 0.0f};
  int rest;
  const int lo = divided(at, 2 * axis.to,
                         (int)fmaxf((x + 0.5f) * axis.scale - 0.5f, 0), &rest);
  if (lo >= axis.n - 1) return {axis.n - 1, axis.n - 1, 0.0f};
  return {lo, lo + 1, rest * axis.part};
}
// --8<-- [end:tap]

// --8<-- [start:between]
__device__ __forceinline__ float between(float a, float b, float weight) {
  return fmaf(weight, b - a, a);
}
// --8<-- [end:between]
