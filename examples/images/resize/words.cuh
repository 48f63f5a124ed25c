// Four pixels of three bytes as three words of four bytes, and two neighbors of
// an image out of three words. Used by resize and warp.
//
// WORDS and BY_BITS are what a try-out may change.
#pragma once

#ifndef WORDS
#define WORDS 1  // 1: the image is read by words, 0: by bytes
#endif
#ifndef BY_BITS
#define BY_BITS 1  // 1: bytes become numbers by their bits, 0: by conversions
#endif

constexpr int PIXELS = 4;  // neighbors of a thread

// --8<-- [start:pair]
// Two neighbors of a row: the channels of the first, then of the second.
struct Pair {
  float at[6];
};

// 2^23 + b for a byte b: b stands in the last bits.
constexpr float ZERO = BY_BITS ? 8388608.0f : 0.0f;

template <int which>
__device__ __forceinline__ float number(unsigned low, unsigned high) {
  const unsigned word = which < 4 ? low : high;
  if (BY_BITS)
    return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7440 | which % 4));
  return (float)(word >> 8 * (which % 4) & 255u);
}

// The pixel that begins at byte `at` of the image, and the one behind it. Three
// words are read from the word that holds the first byte, so that many bytes of
// the image have to follow; image begins at a multiple of four bytes.
constexpr int READ = 12;

__device__ __forceinline__ Pair load_words(const unsigned char* image,
                                           long long at) {
  const unsigned* const w = (const unsigned*)(image + (at & ~3LL));
  const unsigned a = w[0], b = w[1], c = w[2];
  const unsigned by = 8 * (unsigned)at;  // the shift takes its last five bits
  const unsigned low = __funnelshift_r(a, b, by);
  const unsigned high = __funnelshift_r(b, c, by);
  return {{number<0>(low, high), number<1>(low, high), number<2>(low, high),
           number<3>(low, high), number<4>(low, high), number<5>(low, high)}};
}

// The same byte by byte. What lies behind the last of the image's bytes counts
// as 0; its weight is 0.
__device__ __forceinline__ Pair load_bytes(const unsigned char* image,
                                           long long at, long long bytes) {
  Pair p;
#pragma unroll
  for (int i = 0; i < 6; ++i)
    p.at[i] = (at + i < bytes ? image[at + i] : 0) + ZERO;
  return p;
}
// --8<-- [end:pair]

// --8<-- [start:byte]
// The nearest integer, of two equally near ones the even one.
__device__ __forceinline__ unsigned to_byte(float v) {
  if (BY_BITS) return __float_as_uint(v + ZERO) & 255u;
  return (unsigned)__float2int_rn(v);
}

// Differences are exact with ZERO, too.
__device__ __forceinline__ float mixed(float a, float b, float weight) {
  return fmaf(weight, b - a, a - ZERO);
}
// --8<-- [end:byte]

// --8<-- [start:store]
// Writes `count` pixels from `to` on: four as three words, where `aligned`.
__device__ __forceinline__ void store(unsigned char* to,
                                      const unsigned (&v)[PIXELS * 3],
                                      int count, bool aligned) {
  if (count == PIXELS && aligned) {
#pragma unroll
    for (int w = 0; w < 3; ++w)
      ((unsigned*)to)[w] = v[4 * w] | v[4 * w + 1] << 8 | v[4 * w + 2] << 16 |
                           v[4 * w + 3] << 24;
  } else {
#pragma unroll
    for (int i = 0; i < PIXELS * 3; ++i)
      if (i < count * 3) to[i] = v[i];
  }
}
// --8<-- [end:store]
