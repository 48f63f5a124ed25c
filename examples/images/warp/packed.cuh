// Four neighbors out of words, mixed to one pixel; and pixels of three bytes
// packed into words by neighboring lanes. Used by packed.cu and tile.cu.
#pragma once
#include "../resize/words.cuh"

#ifndef WEIGHTS
#define WEIGHTS 0  // 1: weights of 16 bits, by dot products of bytes
#endif

// --8<-- [start:store]
// Pixels of three bytes in four lanes are three words. Each of the first three
// lanes has the rest of its neighbor's pixel behind its own. k: which of the
// four lanes; whole: all four have a pixel, and the first one begins a word.
__device__ __forceinline__ void store_packed(unsigned char* to, unsigned pixel,
                                             int k, bool whole, bool on) {
  const unsigned next = __shfl_down_sync(0xffffffffu, pixel, 1);
  if (!on) return;
  const unsigned which = k == 0 ? 0x4210 : k == 1 ? 0x5421 : 0x6542;
  if (whole) {
    if (k < 3) *(unsigned*)(to + k) = __byte_perm(pixel, next, which);
  } else {
    for (int c = 0; c < 3; ++c) to[c] = pixel >> 8 * c;
  }
}
// --8<-- [end:store]

// A row of pixels at `out`, of which this lane has the one in column x.
__device__ __forceinline__ void store_row(unsigned char* out, unsigned pixel,
                                          int x, int y, int out_height,
                                          int out_width) {
  const long long row = 3LL * y * out_width;
  const bool whole = x - x % 4 + 3 < out_width && row % 4 == 0;
  store_packed(out + row + 3 * x, pixel, x % 4, whole,
               x < out_width && y < out_height);
}

// The last bytes of three words. The fourth byte may be anything.
__device__ __forceinline__ unsigned pack(unsigned r, unsigned g, unsigned b) {
  return __byte_perm(__byte_perm(r, g, 0x0040), b, 0x0410);
}

// Two neighbors of a row: their six bytes, the first one last in `low`.
struct Bytes {
  unsigned low, high;
};

#ifndef DOTS
#define DOTS 0  // 1: half of the bytes become numbers by dot products, 2: all
#endif

// 2^23 + b for byte `which` of six, by its bits: permutations
// keep one pipe of the SM busy, dot products another one.
template <int which>
__device__ __forceinline__ float biased(Bytes six) {
  if (DOTS == 2 || (DOTS == 1 && which >= 3))
    return __uint_as_float(__dp4a(which < 4 ? six.low : six.high,
                                  1u << 8 * (which % 4), 0x4b000000u));
  return number<which>(six.low, six.high);
}

// Two pixels, each in the first three bytes of a word.
__device__ __forceinline__ Bytes pair(unsigned left, unsigned right) {
  return {__byte_perm(left, right, 0x4210), right >> 8};
}

// byte: where they begin, of which the last two bits count; w: the word there.
__device__ __forceinline__ Bytes six(const unsigned* w, unsigned byte) {
  const unsigned a = w[0], b = w[1], c = w[2], by = 8 * byte;
  return {__funnelshift_r(a, b, by), __funnelshift_r(b, c, by)};
}

// --8<-- [start:channel]
// Differences of biased numbers are exact, and a sum with one of them is
// rounded to an integer, which stands in the last bits.
template <int c>
__device__ __forceinline__ unsigned channel(Bytes up, Bytes low, float x,
                                            float y) {
  const float a = biased<c>(up), b = biased<3 + c>(up) - a;
  const float below = biased<c>(low), d = biased<3 + c>(low) - below;
  const float more = fmaf(y, fmaf(x, d - b, below - a), x * b);
  return __float_as_uint(a + more);
}
// --8<-- [end:channel]

// --8<-- [start:bits]
// Weights of 16 bits, whose sum is 65535 of 65536, for dot products of two
// weights with two bytes.
__device__ __forceinline__ unsigned mix_bits(Bytes up, Bytes low, unsigned x,
                                             unsigned y) {
  const unsigned both = (x * y + 65535) >> 16, one = y - both;
  const unsigned of_up = (65535 - x - one) | (x - both) << 16;
  const unsigned of_low = one | both << 16;
  const unsigned up_rg = __byte_perm(up.low, up.high, 0x4130);
  const unsigned up_b = __byte_perm(up.low, up.high, 0x0052);
  const unsigned low_rg = __byte_perm(low.low, low.high, 0x4130);
  const unsigned low_b = __byte_perm(low.low, low.high, 0x0052);
  const unsigned half = 1 << 15;
  const unsigned r = __dp2a_lo(of_low, low_rg, __dp2a_lo(of_up, up_rg, half));
  const unsigned g = __dp2a_hi(of_low, low_rg, __dp2a_hi(of_up, up_rg, half));
  const unsigned b = __dp2a_lo(of_low, low_b, __dp2a_lo(of_up, up_b, half));
  return __byte_perm(__byte_perm(r, g, 0x0062), b, 0x0610);
}
// --8<-- [end:bits]

// --8<-- [start:mix]
// x, y: fractions of the position, in 2^-32.
__device__ __forceinline__ unsigned mix(Bytes up, Bytes low, unsigned x,
                                        unsigned y) {
  if (WEIGHTS) return mix_bits(up, low, x >> 16, y >> 16);
  const float across = x * 0x1p-32f, down = y * 0x1p-32f;
  return pack(channel<0>(up, low, across, down),
              channel<1>(up, low, across, down),
              channel<2>(up, low, across, down));
}
// --8<-- [end:mix]
