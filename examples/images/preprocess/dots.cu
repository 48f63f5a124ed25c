// One kernel from photographs to the input of a network, by dot products of
// bytes: __dp2a multiplies two bytes by two weights of 16 bits, and adds.
//
// A block has a tile of the output. It finds the taps of the tile's columns and
// rows once, for all its threads.
#include "letterbox.cuh"

#ifndef PIXELS
#define PIXELS 4  // of a row, for each thread
#endif
#ifndef NEIGHBORS
#define NEIGHBORS 4  // of these, in one store; they divide the output's width
#endif
#ifndef ROWS
#define ROWS 4  // of a thread
#endif
#ifndef UNROLL
#define UNROLL 1  // rows of a thread at the same time
#endif
#ifndef BOTH
#define BOTH 0  // 1: a row of weight 0 is blended all the same, 0: it is not
#endif
#ifndef CENTER
#define CENTER 0  // 1: tiles of the middle first, of all images, 0: by image
#endif
#ifndef BLOCKS
#define BLOCKS 4  // that a multiprocessor holds, at least
#endif

constexpr int WIDE = ACROSS * PIXELS, HIGH = DOWN * ROWS;  // of a tile
constexpr int UNROLLED = UNROLL;
static_assert(PIXELS % NEIGHBORS == 0, "a store has neighbors");
static_assert(WIDE <= ACROSS * DOWN && HIGH <= ACROSS * DOWN, "a tap a thread");

// --8<-- [start:scale]
// A weight of 1 is 2^15. 2^23 + a number below 2^23 has that number as its
// last bits, so the bits of a sum are those of a float.
constexpr unsigned ONE = 1 << 15, ZERO = 0x4b000000u;

// What such a sum, as a float, becomes: sum * by[c] + plus[c], c in the order
// of the output.
struct Scale {
  float by[3], plus[3];
  float border[3];   // what stands around the image
  unsigned outside;  // the sum of a pixel there
};
// --8<-- [end:scale]

// --8<-- [start:dots]
// Two neighbors of a row, of which `at` is the first, with their weights: the
// channels' sums. Up to 11 bytes behind `at` are read; what lies behind the
// image has the weight 0.
__device__ __forceinline__ void dots(float (&sum)[3], const unsigned char* at,
                                     unsigned weights, unsigned zero) {
  const size_t address = (size_t)at;
  const unsigned* const word = (const unsigned*)(address & ~(size_t)3);
  const unsigned a = __ldg(word), b = __ldg(word + 1), c = __ldg(word + 2);
  const unsigned shift = 8 * (unsigned)address;  // its last 5 bits count
  const unsigned low = __funnelshift_r(a, b, shift);
  const unsigned high = __funnelshift_r(b, c, shift);
  const unsigned two = __byte_perm(low, high, 0x4130);  // bytes 0, 3; 1, 4
  const unsigned one = __byte_perm(low, high, 0x0052);  // bytes 2, 5
  sum[0] = __uint_as_float(__dp2a_lo(weights, two, zero));
  sum[1] = __uint_as_float(__dp2a_hi(weights, two, zero));
  sum[2] = __uint_as_float(__dp2a_lo(weights, one, zero));
}
// --8<-- [end:dots]

// --8<-- [start:taps]
struct alignas(16) Row {
  unsigned up, down;   // bytes from the image's first to the two rows
  float above, below;  // their weights
};

// The columns and rows of a tile.
struct Taps {
  alignas(16) unsigned at[WIDE];       // bytes from the row's first
  alignas(16) unsigned weights[WIDE];  // of two neighbors, 16 bits each
  alignas(16) unsigned zero[WIDE];     // what a sum begins with
  Row row[HIGH];
};

__device__ __forceinline__ void find(Taps& taps, const Image& image, int x,
                                     int y, const Scale& scale) {
  const int t = threadIdx.y * ACROSS + threadIdx.x;
  if (t < WIDE) {
    const bool in = inside(x + t, image.left, image.new_width);
    const Tap one = tap(x + t - image.left, image.across, image.width);
    const unsigned right = __float2uint_rn(one.weight * ONE);
    taps.at[t] = 3 * one.lo;
    taps.weights[t] = in ? right << 16 | (ONE - right) : 0;
    taps.zero[t] = in ? ZERO : scale.outside;
  }
  const int i = ACROSS * DOWN - 1 - t;  // other threads, if there are enough
  if (i < HIGH) {
    const Tap one = tap(y + i - image.top, image.down, image.height);
    const unsigned bytes = 3u * image.width, up = one.lo * bytes;
    // A row of weight 0 is not read: the one above is, twice.
    const unsigned down = one.weight > 0 ? up + bytes : up;
    taps.row[i] = {up, down, 1 - one.weight, one.weight};
  }
}
// --8<-- [end:taps]

// Of the tile: where a thread's pixel p lies.
__device__ __forceinline__ int column(int p) {
  const int store = p / NEIGHBORS * ACROSS + threadIdx.x;
  return store * NEIGHBORS + p % NEIGHBORS;
}

// --8<-- [start:blend]
// A row of four neighbors, of two rows of the photograph or of one.
template <bool both>
__device__ __forceinline__ void blend(
    float (&v)[3][PIXELS], const unsigned char* first, const Row& row,
    const unsigned (&at)[PIXELS], const unsigned (&weights)[PIXELS],
    const unsigned (&zero)[PIXELS], const Scale& scale) {
  const unsigned char* const up = first + row.up;
  const unsigned char* const down = first + row.down;
#pragma unroll
  for (int p = 0; p < PIXELS; ++p) {
    float sum[3], more[3];
    dots(sum, up + at[p], weights[p], zero[p]);
    if (both) dots(more, down + at[p], weights[p], zero[p]);
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      const int from = SWAP ? 2 - c : c;
      v[c][p] = scale.plus[c];
      if (both) v[c][p] = fmaf(more[from], row.below * scale.by[c], v[c][p]);
      v[c][p] = fmaf(sum[from], row.above * scale.by[c], v[c][p]);
    }
  }
}
// --8<-- [end:blend]

// Which row of tiles a block has. From the middle outwards: the last ones have
// nothing but border.
__device__ __forceinline__ int tile_row() {
  if (!CENTER) return blockIdx.y;
  const int k = blockIdx.z, away = (k + 1) / 2;
  return (int)gridDim.z / 2 + (k % 2 ? -away : away);
}

// --8<-- [start:kernel]
// pixels: 12 bytes longer than its images, each of which has fewer than
// 2^32 bytes.
extern "C" __global__ void __launch_bounds__(ACROSS* DOWN, BLOCKS)
    letterbox_dots(const unsigned char* __restrict__ pixels,
                   const Image* __restrict__ images, Scale scale, int height,
                   int width, __nv_bfloat16* __restrict__ out) {
  __shared__ Taps taps;
  const int of = CENTER ? blockIdx.y : blockIdx.z;
  const Image image = images[of];
  const int left = blockIdx.x * WIDE, top = tile_row() * HIGH;
  const bool any =  // of the image, in this tile
      left < image.left + image.new_width && left + WIDE > image.left &&
      top < image.top + image.new_height && top + HIGH > image.top;
  unsigned at[PIXELS], weights[PIXELS], zero[PIXELS];
  if (any) {
    find(taps, image, left, top, scale);
    __syncthreads();
  }
#pragma unroll
  for (int p = 0; p < PIXELS; ++p) {  // nobody uses them without `any`
    const int i = column(p);
    at[p] = taps.at[i], weights[p] = taps.weights[i], zero[p] = taps.zero[i];
  }
  const unsigned char* const first = pixels + image.first;
  const long long plane = (long long)height * width;
  const long long row = (long long)DOWN * width * (CHANNELS_LAST ? 3 : 1);
  __nv_bfloat16* to =
      place(out, of, top + threadIdx.y, left + column(0), height, width);
#pragma unroll UNROLLED
  for (int r = 0; r < ROWS; ++r, to += row) {
    const int i = r * DOWN + threadIdx.y, y = top + i;
    if (y >= height) return;
    float v[3][PIXELS];
    if (any && inside(y, image.top, image.new_height)) {
      const Row rows = taps.row[i];  // a warp has one row: no divergence
      if (BOTH || rows.below > 0)
        blend<true>(v, first, rows, at, weights, zero, scale);
      else
        blend<false>(v, first, rows, at, weights, zero, scale);
    } else {
#pragma unroll
      for (int p = 0; p < PIXELS; ++p)
#pragma unroll
        for (int c = 0; c < 3; ++c) v[c][p] = scale.border[c];
    }
#pragma unroll
    for (int p = 0; p < PIXELS; p += NEIGHBORS) {
      const int away = column(p) - column(0);
      if (left + column(p) < width)
        store<NEIGHBORS>(v, p, to + (CHANNELS_LAST ? 3 : 1) * away, plane);
    }
  }
}
// --8<-- [end:kernel]
