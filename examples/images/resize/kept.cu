// The letterbox for images that grow: a thread makes four neighbors in each of
// ROWS rows that lie one below the other.
//
// Two such rows mostly lie between the same two rows of the image, or between
// one of them and the next. So what four pixels are made of in a row of the
// image is kept, and a row is loaded once for all rows that need it.
// ROWS and RESIDENT are what a try-out may change.
#include "taps.cuh"
#include "words.cuh"

static_assert(BY_BITS, "a byte is the last one of 2^23 + b");

#ifndef ROWS
#define ROWS 16  // of a thread
#endif
#ifndef RESIDENT  // blocks that an SM shall hold
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define RESIDENT 3  // with 4 it would spill
#else
#define RESIDENT 4
#endif
#endif

constexpr int ACROSS = 32, DOWN = 8;  // threads of a block

// --8<-- [start:across]
// Four pixels within a row of the image that begins at byte `row`.
template <bool by_words>
__device__ __forceinline__ void across_row(float (&v)[PIXELS * 3],
                                           const unsigned char* image,
                                           long long row,
                                           const Tap (&column)[PIXELS],
                                           long long bytes) {
  Pair pair[PIXELS];
#pragma unroll
  for (int p = 0; p < PIXELS; ++p) {
    const long long at = row + 3 * column[p].lo;
    pair[p] = by_words ? load_words(image, at) : load_bytes(image, at, bytes);
  }
#pragma unroll
  for (int i = 0; i < PIXELS * 3; ++i)
    v[i] = mixed(pair[i / 3].at[i % 3], pair[i / 3].at[3 + i % 3],
                 column[i / 3].weight);
}

__device__ __forceinline__ void across_row(float (&v)[PIXELS * 3],
                                           const unsigned char* image,
                                           long long row,
                                           const Tap (&column)[PIXELS],
                                           long long bytes) {
  if (row + 3 * column[PIXELS - 1].lo + READ <= bytes)
    across_row<true>(v, image, row, column, bytes);
  else  // near the last byte of the image
    across_row<false>(v, image, row, column, bytes);
}
// --8<-- [end:across]

// --8<-- [start:packed]
// The last bytes of four words, as a word.
__device__ __forceinline__ unsigned packed(const unsigned* v) {
  return __byte_perm(__byte_perm(v[0], v[1], 0x0040),
                     __byte_perm(v[2], v[3], 0x0040), 0x5410);
}

// Writes `count` pixels from `to` on: four as three words, where `aligned`.
__device__ __forceinline__ void store_last(unsigned char* to,
                                           const unsigned (&v)[PIXELS * 3],
                                           int count, bool aligned) {
  if (count == PIXELS && aligned) {
#pragma unroll
    for (int w = 0; w < 3; ++w) ((unsigned*)to)[w] = packed(v + 4 * w);
  } else {
#pragma unroll
    for (int i = 0; i < PIXELS * 3; ++i)
      if (i < count * 3) to[i] = (unsigned char)v[i];
  }
}
// --8<-- [end:packed]

// --8<-- [start:kept]
// out and image begin at multiples of four bytes.
extern "C" __global__ void __launch_bounds__(ACROSS* DOWN, RESIDENT)
    letterbox_kept(unsigned char* __restrict__ out,
                   const unsigned char* __restrict__ image, Axis down,
                   Axis across, int height, int width, int top, int left,
                   int border) {
  const int x = (blockIdx.x * ACROSS + threadIdx.x) * PIXELS;
  const int first = (blockIdx.y * DOWN + threadIdx.y) * ROWS;
  if (x >= width) return;
  const long long bytes = 3LL * down.n * across.n;
  Tap column[PIXELS];
  bool in[PIXELS];
#pragma unroll
  for (int p = 0; p < PIXELS; ++p) {
    const int at = x + p - left;
    in[p] = at >= 0 && at < across.to;
    // A pixel of the border takes the nearest one: then no branch parts loads.
    column[p] = tap(min(max(at, 0), across.to - 1), across);
  }
  // Where the center of a row lies, in steps of 1 / (2 * to) of a row: from row
  // to row by additions of integers, so it stays exact.
  const int skip = max(first - top, 0), unit = 2 * down.to;
  const int whole = down.n / down.to, more = 2 * (down.n % down.to);
  int rest;
  int lo = divided((2LL * skip + 1) * down.n - down.to, unit,
                   (int)fmaxf((skip + 0.5f) * down.scale - 0.5f, 0), &rest);
  float upper[PIXELS * 3], lower[PIXELS * 3];
  int up = -1, low = -1;  // the rows of the image that these are of
#pragma unroll 1
  for (int y = first; y < min(first + ROWS, height); ++y) {
    unsigned v[PIXELS * 3];
    const bool row_in = y >= top && y - top < down.to;
    // --8<-- [start:kept-rows]
    if (row_in) {  // the same for the whole warp
      const int above = max(lo, 0), below = min(lo + 1, down.n - 1);
      const float weight = above < below ? rest * down.part : 0.0f;
      lo += whole, rest += more;
      if (rest >= unit) rest -= unit, ++lo;
      if (above != up) {
        if (above == low) {
#pragma unroll
          for (int i = 0; i < PIXELS * 3; ++i) upper[i] = lower[i];
        } else {
          across_row(upper, image, 3LL * above * across.n, column, bytes);
        }
        up = above;
      }
      if (below != low) {
        across_row(lower, image, 3LL * below * across.n, column, bytes);
        low = below;
      }
#pragma unroll
      for (int i = 0; i < PIXELS * 3; ++i)
        v[i] = __float_as_uint(between(upper[i], lower[i], weight) + ZERO);
    }
    // --8<-- [end:kept-rows]
    if (!row_in || !in[0] || !in[PIXELS - 1]) {
#pragma unroll
      for (int i = 0; i < PIXELS * 3; ++i)
        if (!row_in || !in[i / 3]) v[i] = border;
    }
    const long long to = ((long long)y * width + x) * 3;
    store_last(out + to, v, min(PIXELS, width - x), to % 4 == 0);
  }
}
// --8<-- [end:kept]
