// The bilinear warp, faster: a lane makes ROWS pixels, each blockDim.y rows
// below the one before, so that a warp of 8 x 4 lanes looks at a small piece of
// the image at any angle. Three of four lanes store a word.
//
//   warp_packed<>  plain loads
//   warp_sampled   a filtered texture
//
// blockDim.x is a multiple of 4, and the block of 32.
//
// @instance warp_packed<CONSTANT>
// @instance warp_packed<REPLICATE>
#include "../resize/words.cuh"
#include "map.cuh"
#include "sample.cuh"

#ifndef ROWS
#define ROWS 2
#endif
#ifndef WEIGHTS
#define WEIGHTS 0  // 1: weights of 16 bits, by dot products of bytes
#endif

// --8<-- [start:store]
// Pixels of three bytes in four lanes are three words. Each of the first three
// lanes has the rest of its neighbor's pixel behind its own.
__device__ __forceinline__ void store_packed(unsigned char* out, unsigned pixel,
                                             int x, int y, int out_height,
                                             int out_width) {
  const unsigned next = __shfl_down_sync(0xffffffffu, pixel, 1);
  if (x >= out_width || y >= out_height) return;
  const int k = x % 4;
  const long long row = 3LL * y * out_width;
  unsigned char* const to = out + row + 3 * x;
  if (x - k + 3 < out_width && row % 4 == 0) {
    const unsigned which = k == 0 ? 0x4210 : k == 1 ? 0x5421 : 0x6542;
    if (k < 3) *(unsigned*)(to + k) = __byte_perm(pixel, next, which);
  } else {
    for (int c = 0; c < 3; ++c) to[c] = pixel >> 8 * c;
  }
}
// --8<-- [end:store]

// The last bytes of three words. The fourth byte may be anything.
__device__ __forceinline__ unsigned pack(unsigned r, unsigned g, unsigned b) {
  return __byte_perm(__byte_perm(r, g, 0x0040), b, 0x0410);
}

// --8<-- [start:exact]
// Four neighbors, which begin at byte `at` and one row below.
__device__ __forceinline__ unsigned mix(const unsigned char* image,
                                        long long at, long long pitch, float x,
                                        float y) {
  const Pair up = load_words(image, at);
  const Pair low = load_words(image, at + pitch);
  unsigned v[3];
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    const float a = mixed(up.at[c], up.at[3 + c], x);
    const float b = mixed(low.at[c], low.at[3 + c], x);
    v[c] = __float_as_uint(fmaf(y, b - a, a) + 8388608.0f);
  }
  return pack(v[0], v[1], v[2]);
}
// --8<-- [end:exact]

// --8<-- [start:bits]
// The same with weights of 16 bits, whose sum is 65535 of 65536.
struct Bytes {
  unsigned low, high;
};

__device__ __forceinline__ Bytes six(const unsigned char* image, long long at) {
  const unsigned* const w = (const unsigned*)(image + (at & ~3LL));
  const unsigned a = w[0], b = w[1], c = w[2], by = 8 * (unsigned)at;
  return {__funnelshift_r(a, b, by), __funnelshift_r(b, c, by)};
}

__device__ __forceinline__ unsigned mix_bits(const unsigned char* image,
                                             long long at, long long pitch,
                                             unsigned x, unsigned y) {
  const Bytes up = six(image, at), low = six(image, at + pitch);
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

// --8<-- [start:packed]
// out and image begin at multiples of four bytes.
template <int border>
__global__ void warp_packed(unsigned char* __restrict__ out,
                            const unsigned char* __restrict__ image, Fixed m,
                            int out_height, int out_width, int height,
                            int width, float value) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y * ROWS + threadIdx.y;
  const long long first_column = along(m.a, m.b, m.c, x, y);
  const long long first_row = along(m.d, m.e, m.f, x, y);
  const long long over = m.b * blockDim.y, down_by = m.e * blockDim.y;
  long long column[ROWS], row[ROWS];
  bool all = true;  // READ bytes follow in the row below, too
#pragma unroll
  for (int k = 0; k < ROWS; ++k) {
    column[k] = first_column + k * over;
    row[k] = first_row + k * down_by;
    const int left = (int)(column[k] >> 32), top = (int)(row[k] >> 32);
    all = all && left >= 0 && left < width - 1 && top >= 0 && top < height - 2;
  }
  unsigned pixel[ROWS];
  if (all) {
#pragma unroll
    for (int k = 0; k < ROWS; ++k) {
      const int left = (int)(column[k] >> 32), top = (int)(row[k] >> 32);
      const long long at = 3 * ((long long)top * width + left);
      if (WEIGHTS)
        pixel[k] = mix_bits(image, at, 3LL * width, (unsigned)column[k] >> 16,
                            (unsigned)row[k] >> 16);
      else
        pixel[k] = mix(image, at, 3LL * width, split(column[k]).between,
                       split(row[k]).between);
    }
  } else {
#pragma unroll
    for (int k = 0; k < ROWS; ++k) {
      const Position c = split(column[k]), r = split(row[k]);
      float down[2], across[2], sum[3];
      weigh(r.between, down);
      weigh(c.between, across);
      sample<2, border>(image, height, width, r.whole, c.whole, down, across,
                        value, sum);
      pixel[k] = pack(byte(sum[0]), byte(sum[1]), byte(sum[2]));
    }
  }
#pragma unroll
  for (int k = 0; k < ROWS; ++k)
    store_packed(out, pixel[k], x, y + k * blockDim.y, out_height, out_width);
}
// --8<-- [end:packed]

// --8<-- [start:sampled]
// texture: bytes as numbers from 0 to 1, filtered; out begins at a multiple of
// four bytes.
extern "C" __global__ void warp_sampled(unsigned char* __restrict__ out,
                                        unsigned long long texture, Fixed m,
                                        int out_height, int out_width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y * ROWS + threadIdx.y;
  unsigned pixel[ROWS];
#pragma unroll
  for (int k = 0; k < ROWS; ++k) {
    const int j = y + k * blockDim.y;
    const Position column = split(along(m.a, m.b, m.c, x, j));
    const Position row = split(along(m.d, m.e, m.f, x, j));
    const float4 p =
        tex2D<float4>(texture, column.whole + column.between + 0.5f,
                      row.whole + row.between + 0.5f);
    const float zero = 8388608.0f;  // 2^23: rounds to an integer
    pixel[k] = pack(__float_as_uint(fmaf(255, p.x, zero)),
                    __float_as_uint(fmaf(255, p.y, zero)),
                    __float_as_uint(fmaf(255, p.z, zero)));
  }
#pragma unroll
  for (int k = 0; k < ROWS; ++k)
    store_packed(out, pixel[k], x, y + k * blockDim.y, out_height, out_width);
}
// --8<-- [end:sampled]
