// The bilinear warp by tiles: a block brings the piece of the image that its 32
// x HIGH pixels come from into shared memory, a row by whole words, and looks
// up neighbors there. What lies beyond the image is filled in at once.
//
// Blocks have 32 x 8 threads.
//
// @instance warp_tile<CONSTANT>
// @instance warp_tile<REPLICATE>
#include "map.cuh"
#include "packed.cuh"
#include "sample.cuh"

#ifndef HIGH
#define HIGH 32
#endif

constexpr int WIDE = 32, WARPS = 8, GROUP = 16;

// --8<-- [start:first]
// The first whole position of a tile that begins at `at`.
__device__ __forceinline__ int first(long long at, long long across,
                                     long long down) {
  const long long x = across * (WIDE - 1), y = down * (HIGH - 1);
  return (int)((at + min(x, 0LL) + min(y, 0LL)) >> 32);
}
// --8<-- [end:first]

// --8<-- [start:bring]
// box: rows of `pitch` words, an odd number; each begins with a pixel.
template <int border>
__device__ __forceinline__ void bring(unsigned* box, int pitch, int columns,
                                      int rows, int left, int top,
                                      const unsigned char* __restrict__ image,
                                      int height, int width, float value) {
  const int thread = threadIdx.y * WIDE + threadIdx.x;
  if (left >= 0 && left + columns <= width && top >= 0 && top + rows < height) {
    const int words = (3 * columns + 3) / 4;
    for (int r = thread / GROUP; r < rows; r += WARPS * WIDE / GROUP) {
      const long long at = 3 * ((long long)(top + r) * width + left);
      const unsigned* const from = (const unsigned*)(image + (at & ~3LL));
      for (int w = thread % GROUP; w < words; w += GROUP)
        box[r * pitch + w] =
            __funnelshift_r(from[w], from[w + 1], 8 * (unsigned)at);
    }
  } else {
    for (int i = thread; i < rows * columns; i += WARPS * WIDE) {
      const int r = i / columns, c = i % columns;
      const int y = inside<border>(top + r, height);
      const int x = inside<border>(left + c, width);
      const bool here = border != CONSTANT || (y >= 0 && x >= 0);
      const long long at = 3 * ((long long)y * width + x);
      unsigned char* const to = (unsigned char*)(box + r * pitch) + 3 * c;
      for (int k = 0; k < 3; ++k)
        to[k] = here ? image[at + k] : (unsigned char)value;
    }
  }
}
// --8<-- [end:bring]

// --8<-- [start:tile]
// out and image begin at multiples of four bytes. columns, rows: of the image,
// that a tile needs at most.
template <int border>
__global__ void __launch_bounds__(WIDE* WARPS)
    warp_tile(unsigned char* __restrict__ out,
              const unsigned char* __restrict__ image, Fixed m, int out_height,
              int out_width, int height, int width, float value, int columns,
              int rows, int pitch) {
  extern __shared__ unsigned box[];
  const int x0 = blockIdx.x * WIDE, y0 = blockIdx.y * HIGH;
  const int left = first(along(m.a, m.b, m.c, x0, y0), m.a, m.b);
  const int top = first(along(m.d, m.e, m.f, x0, y0), m.d, m.e);
  bring<border>(box, pitch, columns, rows, left, top, image, height, width,
                value);
  __syncthreads();
  const int x = x0 + threadIdx.x, y = y0 + threadIdx.y;
  // Positions in the box are from 0 on.
  long long column = along(m.a, m.b, m.c, x, y) - ((long long)left << 32);
  long long row = along(m.d, m.e, m.f, x, y) - ((long long)top << 32);
  unsigned pixel[HIGH / WARPS];
  // --8<-- [start:look]
#pragma unroll
  for (int k = 0; k < HIGH / WARPS; ++k) {
    const int byte = 3 * (int)(column >> 32);
    const unsigned* const w = box + (int)(row >> 32) * pitch + (byte >> 2);
    pixel[k] = mix(six(w, byte), six(w + pitch, byte), (unsigned)column,
                   (unsigned)row);
    column += WARPS * m.b;
    row += WARPS * m.e;
  }
  // --8<-- [end:look]
  const long long at = 3 * ((long long)y * out_width + x);
  const int lane = x % 4;
  // 8 rows further down, a row begins at the same byte of a word.
  const bool whole = x - lane + 3 < out_width && (at - 3 * lane) % 4 == 0;
#pragma unroll
  for (int k = 0; k < HIGH / WARPS; ++k)
    store_packed(out + at + 3LL * k * WARPS * out_width, pixel[k], lane, whole,
                 x < out_width && y + k * WARPS < out_height);
}
// --8<-- [end:tile]
