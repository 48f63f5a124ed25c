// The bilinear warp, faster: a lane makes ROWS pixels, each blockDim.y rows
// below the one before, so that a warp of 8 x 4 lanes looks at a small piece of
// the image at any angle. Three of four lanes store a word.
//
//   warp_packed<>  plain loads
//   warp_sampled   a filtered texture
//   warp_gathered  a texture, of which a read brings four neighbors
//
// blockDim.x is a multiple of 4, and the block of 32.
//
// @instance warp_packed<CONSTANT>
// @instance warp_packed<REPLICATE>
#include "map.cuh"
#include "packed.cuh"
#include "sample.cuh"

#ifndef ROWS
#define ROWS 2
#endif

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
      const long long below = at + 3LL * width;
      const Bytes up = six((const unsigned*)(image + (at & ~3LL)), at);
      const Bytes low = six((const unsigned*)(image + (below & ~3LL)), below);
      pixel[k] = mix(up, low, (unsigned)column[k], (unsigned)row[k]);
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
    store_row(out, pixel[k], x, y + k * blockDim.y, out_height, out_width);
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
    store_row(out, pixel[k], x, y + k * blockDim.y, out_height, out_width);
}
// --8<-- [end:sampled]

// --8<-- [start:gathered]
// texture: pixels as words. A read brings four of them, those around the corner
// at (left + 1, top + 1), beginning at the lower left, counterclockwise.
extern "C" __global__ void warp_gathered(unsigned char* __restrict__ out,
                                         unsigned long long texture, Fixed m,
                                         int out_height, int out_width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y * ROWS + threadIdx.y;
  unsigned pixel[ROWS];
#pragma unroll
  for (int k = 0; k < ROWS; ++k) {
    const int j = y + k * blockDim.y;
    const long long column = along(m.a, m.b, m.c, x, j);
    const long long row = along(m.d, m.e, m.f, x, j);
    const uint4 p = tex2Dgather<uint4>(texture, (int)(column >> 32) + 1.0f,
                                       (int)(row >> 32) + 1.0f, 0);
    pixel[k] =
        mix(pair(p.w, p.z), pair(p.x, p.y), (unsigned)column, (unsigned)row);
  }
#pragma unroll
  for (int k = 0; k < ROWS; ++k)
    store_row(out, pixel[k], x, y + k * blockDim.y, out_height, out_width);
}
// --8<-- [end:gathered]
