// The letterbox, faster: a thread makes four neighbors in each of ROWS rows.
//
// Columns' taps are made once for all rows; four pixels are three words of four
// bytes; two neighbors in the image, six bytes, are found in three words.
// ROWS, and WORDS and BY_BITS of words.cuh, are what a try-out may change.
#include "taps.cuh"
#include "words.cuh"

#ifndef ROWS
#define ROWS 2  // of a thread
#endif

constexpr int ACROSS = 32, DOWN = 8;  // threads of a block

// --8<-- [start:blend]
// Four pixels, from rows that begin at bytes a and b of the image.
template <bool by_words>
__device__ __forceinline__ void blend(unsigned (&v)[PIXELS * 3],
                                      const unsigned char* image, long long a,
                                      long long b, float down,
                                      const Tap (&column)[PIXELS],
                                      long long bytes) {
#pragma unroll
  for (int p = 0; p < PIXELS; ++p) {
    const int at = 3 * column[p].lo;
    const Pair up =
        by_words ? load_words(image, a + at) : load_bytes(image, a + at, bytes);
    const Pair low =
        by_words ? load_words(image, b + at) : load_bytes(image, b + at, bytes);
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      const float from = mixed(up.at[c], up.at[3 + c], column[p].weight);
      const float to = mixed(low.at[c], low.at[3 + c], column[p].weight);
      v[3 * p + c] = to_byte(between(from, to, down));
    }
  }
}
// --8<-- [end:blend]

// --8<-- [start:rows]
// out and image begin at multiples of four bytes.
extern "C" __global__ void __launch_bounds__(ACROSS* DOWN)
    letterbox_rows(unsigned char* __restrict__ out,
                   const unsigned char* __restrict__ image, Axis down,
                   Axis across, int height, int width, int top, int left,
                   int border) {
  const int x = (blockIdx.x * ACROSS + threadIdx.x) * PIXELS;
  const int first = blockIdx.y * (DOWN * ROWS) + threadIdx.y;
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
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const int y = first + r * DOWN;
    if (y >= height) return;
    unsigned v[PIXELS * 3];
    const bool row_in = y >= top && y - top < down.to;
    if (row_in) {
      const Tap row = tap(y - top, down);
      const long long a = 3LL * row.lo * across.n, b = 3LL * row.hi * across.n;
      const long long last = b + 3 * column[PIXELS - 1].lo;
      if (WORDS && last + READ <= bytes)
        blend<true>(v, image, a, b, row.weight, column, bytes);
      else  // near the last byte of the image
        blend<false>(v, image, a, b, row.weight, column, bytes);
    }
#pragma unroll
    for (int i = 0; i < PIXELS * 3; ++i)
      if (!row_in || !in[i / 3]) v[i] = border;
    const long long to = ((long long)y * width + x) * 3;
    store(out + to, v, min(PIXELS, width - x), to % 4 == 0);
  }
}
// --8<-- [end:rows]
