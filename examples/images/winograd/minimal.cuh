// Winograd's minimal filtering in one dimension, F(M, 3): M results of a window
// of three weights from M + 2 words, with M + 2 multiplications. `reference.py`
// derives the numbers from the points 0, 1, -1 (and 2, -2) and infinity.
//
//   Minimal<M>::words     the words of the image
//   Minimal<M>::weights   the weights
//   Minimal<M>::results   what the products give
//
// Each is a sum of few terms with constants; in two dimensions it is applied to
// the columns, then to the rows.
#pragma once

template <int M>
struct Minimal;

// --8<-- [start:two]
template <>
struct Minimal<2> {
  static constexpr int SIZE = 4;

  static __device__ __forceinline__ void words(float (&to)[4],
                                               const float (&d)[4]) {
    to[0] = d[0] - d[2];
    to[1] = d[1] + d[2];
    to[2] = d[2] - d[1];
    to[3] = d[3] - d[1];
  }

  static __device__ __forceinline__ void weights(float (&to)[4],
                                                 const float (&g)[3]) {
    const float half = 0.5f * (g[0] + g[2]);
    to[0] = g[0];
    to[1] = half + 0.5f * g[1];
    to[2] = half - 0.5f * g[1];
    to[3] = g[2];
  }

  static __device__ __forceinline__ void results(float (&to)[2],
                                                 const float (&m)[4]) {
    to[0] = m[0] + (m[1] + m[2]);
    to[1] = (m[1] - m[2]) + m[3];
  }
};
// --8<-- [end:two]

// --8<-- [start:four]
template <>
struct Minimal<4> {
  static constexpr int SIZE = 6;

  static __device__ __forceinline__ void words(float (&to)[6],
                                               const float (&d)[6]) {
    const float even = 4.0f * d[2] - d[4], odd = 4.0f * d[1] - d[3];
    const float near = d[4] - d[2], far = 2.0f * (d[3] - d[1]);
    to[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
    to[1] = even + odd;
    to[2] = even - odd;
    to[3] = near + far;
    to[4] = near - far;
    to[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
  }

  static __device__ __forceinline__ void weights(float (&to)[6],
                                                 const float (&g)[3]) {
    // A product of its own, which no sum takes in: where a sum is a multiple of
    // 9, its sixth and its 24th are exact.
    const float near = g[0] + g[2], far = g[0] + 4.0f * g[2];
    to[0] = 0.25f * g[0];
    to[1] = __fmul_rn(near + g[1], 1.0f / 6);
    to[2] = __fmul_rn(near - g[1], 1.0f / 6);
    to[3] = __fmul_rn(far + 2.0f * g[1], 1.0f / 24);
    to[4] = __fmul_rn(far - 2.0f * g[1], 1.0f / 24);
    to[5] = g[2];
  }

  static __device__ __forceinline__ void results(float (&to)[4],
                                                 const float (&m)[6]) {
    const float one = m[1] + m[2], two = m[3] + m[4];
    const float less = m[1] - m[2], half = m[3] - m[4];
    to[0] = m[0] + one + two;
    to[1] = less + 2.0f * half;
    to[2] = one + 4.0f * two;
    to[3] = less + 8.0f * half + m[5];
  }
};
// --8<-- [end:four]
