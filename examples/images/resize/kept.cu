// The letterbox for images that grow: a thread makes four neighbors in each of
// ROWS rows that lie one below the other.
//
// Two such rows mostly lie between the same two rows of the image, or between
// one of them and the next. So what four pixels are made of in a row of the
// image is kept, and a row is loaded once for all rows that need it.
// ROWS, RESIDENT and STEPS are what a try-out may change.
#include "taps.cuh"
#include "words.cuh"

static_assert(BY_BITS, "a byte is the last one of 2^23 + b");

#ifndef ROWS
#define ROWS 16  // of a thread
#endif
#ifndef RESIDENT  // blocks that an SM shall hold
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 900
#define RESIDENT 3  // with 4 it spills on some
#else
#define RESIDENT 4
#endif
#endif
#ifndef STEPS
#define STEPS 1  // 1: from column to column by additions, 0: each anew
#endif

constexpr int ACROSS = 32, DOWN = 8;  // threads of a block

// --8<-- [start:center]
// The pixel before a center, and how far behind its own center that lies, in
// parts of 1 / (2 * to) of a pixel. lo is -1 before the first center.
struct Center {
  int lo, rest;
};

// From a center to the next: so many pixels, and so many parts.
struct Step {
  int pixels, parts, unit;
};

__device__ __forceinline__ Center center(int x, Axis axis) {
  Center c;
  c.lo = divided((2LL * x + 1) * axis.n - axis.to, 2 * axis.to,
                 (int)fmaxf((x + 0.5f) * axis.scale - 0.5f, 0), &c.rest);
  return c;
}

__device__ __forceinline__ Step step(Axis axis) {
  Step s;
  s.pixels = divided(axis.n, axis.to, (int)axis.scale, &s.parts);
  s.parts *= 2, s.unit = 2 * axis.to;
  return s;
}

// By additions of integers, so it stays exact.
__device__ __forceinline__ void advance(Center& c, Step s) {
  c.lo += s.pixels, c.rest += s.parts;
  if (c.rest >= s.unit) c.rest -= s.unit, ++c.lo;
}
// --8<-- [end:center]

// --8<-- [start:across]
struct Column {
  int byte;  // of the pixel before, within a row
  float weight;
};

// Four pixels within a row of the image that begins at byte `row`.
template <bool by_words>
__device__ __forceinline__ void across_row(float (&v)[PIXELS * 3],
                                           const unsigned char* image,
                                           long long row,
                                           const Column (&column)[PIXELS],
                                           long long bytes) {
  Pair pair[PIXELS];
#pragma unroll
  for (int p = 0; p < PIXELS; ++p) {
    const long long at = row + column[p].byte;
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
                                           const Column (&column)[PIXELS],
                                           long long bytes) {
  if (row + column[PIXELS - 1].byte + READ <= bytes)
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
  const Step by_column = step(across), by_row = step(down);
  Column column[PIXELS];
  bool in[PIXELS];
  Center c;
#pragma unroll
  for (int p = 0; p < PIXELS; ++p) {
    const int at = x + p - left;
    in[p] = at >= 0 && at < across.to;
    // A pixel of the border takes the nearest one: then no branch parts loads.
    if (p == 0 || !STEPS)
      c = center(min(max(at, 0), across.to - 1), across);
    else if (at > 0 && in[p])
      advance(c, by_column);
    const bool ends = c.lo < 0 || c.lo >= across.n - 1;  // the first, the last
    column[p] = {3 * max(c.lo, 0), ends ? 0.0f : c.rest * across.part};
  }
  const bool all = in[0] && in[PIXELS - 1];
  const int count = min(PIXELS, width - x), last = min(first + ROWS, height);
  Center row = center(max(first - top, 0), down);
  float upper[PIXELS * 3], lower[PIXELS * 3];
  int up = -1, low = -1;  // the rows of the image that these are of
#pragma unroll 1
  for (int y = first; y < last; ++y) {
    unsigned v[PIXELS * 3];
    const bool row_in = y >= top && y - top < down.to;
    // --8<-- [start:kept-rows]
    if (row_in) {  // the same for the whole warp
      const int above = max(row.lo, 0), below = min(row.lo + 1, down.n - 1);
      const float weight = above < below ? row.rest * down.part : 0.0f;
      advance(row, by_row);
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
    if (!row_in || !all) {
#pragma unroll
      for (int i = 0; i < PIXELS * 3; ++i)
        if (!row_in || !in[i / 3]) v[i] = border;
    }
    const long long to = ((long long)y * width + x) * 3;
    store_last(out + to, v, count, to % 4 == 0);
  }
}
// --8<-- [end:kept]
