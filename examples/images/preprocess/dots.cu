// One kernel from photographs to the input of a network, by dot products of
// bytes: __dp2a multiplies two bytes by two weights of 16 bits, and adds.
//
// A block has a tile of the output. It finds the taps of the tile's columns and
// rows once, for all its threads.
#ifndef DOWN
#define DOWN 4  // threads of a block, downwards; 32 across
#endif
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
#ifndef CENTER
#define CENTER 0  // 1: tiles of the middle first, of all images, 0: by image
#endif
#ifndef KEEP
#define KEEP 1  // 1: registers keep the taps of columns, 0: each row loads them
#endif
#ifndef THIRD
#define THIRD 1  // 1: the third word is always read, 0: where it is needed
#endif
#ifndef AHEAD
#define AHEAD 0  // 1: a tile's rows are asked for before its taps are known
#endif
#ifndef TURN
#define TURN 0  // 1: the first tile begins with the image, 0: with the output
#endif
#ifndef BLOCKS
#define BLOCKS 10  // that a multiprocessor holds, at least
#endif

// A multiprocessor of sm_75 holds 1,024 threads.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int MOST_BLOCKS = 1024 / (ACROSS * DOWN);
#else
constexpr int MOST_BLOCKS = 1536 / (ACROSS * DOWN);
#endif
constexpr int HELD = BLOCKS < MOST_BLOCKS ? BLOCKS : MOST_BLOCKS;
constexpr int WIDE = ACROSS * PIXELS, HIGH = DOWN * ROWS;  // of a tile
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
// Two neighbors of a row with their weights: the channels' sums. at: bytes from
// `words` to the first. Up to 11 bytes behind it are read; what lies behind the
// image has the weight 0.
__device__ __forceinline__ void dots(float (&sum)[3], const unsigned* words,
                                     unsigned at, unsigned weights,
                                     unsigned zero) {
  const unsigned* const word = words + at / 4;
  const unsigned a = __ldg(word), b = __ldg(word + 1);
  unsigned c = b;  // six bytes reach into a third word if they begin at 3
  if (THIRD || at % 4 == 3) c = __ldg(word + 2);
  const unsigned shift = 8 * at;  // its last 5 bits count
  const unsigned low = __funnelshift_r(a, b, shift);
  const unsigned high = __funnelshift_r(b, c, shift);
  const unsigned two = __byte_perm(low, high, 0x4130);  // bytes 0, 3; 1, 4
  const unsigned one = __byte_perm(low, high, 0x0052);  // bytes 2, 5
  sum[0] = __uint_as_float(__dp2a_lo(weights, two, zero));
  sum[1] = __uint_as_float(__dp2a_hi(weights, two, zero));
  sum[2] = __uint_as_float(__dp2a_lo(weights, one, zero));
}
// --8<-- [end:dots]

// --8<-- [start:ahead]
#ifdef __CUDACC__
// Asks L2 for whole 16 bytes, and waits for nothing.
__device__ __forceinline__ void ask(const unsigned char* from, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from),
               "r"(bytes)
               : "memory");
#endif
}
#endif

// Asks for what a tile, whose first column is x, needs of a row.
__device__ __forceinline__ void ahead(const Image& image, int x,
                                      const unsigned char* row) {
  const int end = min(x + WIDE - image.left, image.new_width);
  const int begin = max(x - image.left, 0);
  const int lo = tap(begin, image.across, image.width).lo;
  const int hi = tap(end - 1, image.across, image.width).lo;
  const size_t from = (size_t)(row + 3 * lo) & ~(size_t)15;
  const size_t to = (size_t)(row + 3 * hi + 6) & ~(size_t)15;
  if (to > from) ask((const unsigned char*)from, (unsigned)(to - from));
}
// --8<-- [end:ahead]

// --8<-- [start:taps]
struct alignas(16) Row {
  unsigned up, down;   // bytes from the image's first to the two rows
  float above, below;  // their weights
};

// The columns and rows of a tile.
struct Taps {
  alignas(16) unsigned at[WIDE];       // bytes from a row's first word
  alignas(16) unsigned weights[WIDE];  // of two neighbors, 16 bits each
  alignas(16) unsigned zero[WIDE];     // what a sum begins with
  Row row[HIGH];
};

// x, y: the tile's first column and row.
__device__ __forceinline__ void find(Taps& taps, const Image& image, int x,
                                     int y, const unsigned char* first,
                                     const Scale& scale) {
  const int t = threadIdx.y * ACROSS + threadIdx.x;
  if (t < WIDE) {
    const bool in = inside(x + t, image.left, image.new_width);
    const Tap one = tap(x + t - image.left, image.across, image.width);
    const unsigned right = __float2uint_rn(one.weight * ONE);
    taps.at[t] = (unsigned)((size_t)first % 4) + 3 * one.lo;
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
    if (AHEAD && inside(y + i, image.top, image.new_height)) {
      ahead(image, x, first + up);
      if (down != up) ahead(image, x, first + down);
    }
  }
}
// --8<-- [end:taps]

// Of the tile: where a thread's pixel p lies.
__device__ __forceinline__ int column(int p) {
  const int store = p / NEIGHBORS * ACROSS + threadIdx.x;
  return store * NEIGHBORS + p % NEIGHBORS;
}

// Those of a thread.
struct Columns {
  unsigned at[PIXELS], weights[PIXELS], zero[PIXELS];
};

__device__ __forceinline__ void load(Columns& own, const Taps& taps) {
#pragma unroll
  for (int p = 0; p < PIXELS; ++p) {
    const int k = column(p);
    own.at[p] = taps.at[k], own.weights[p] = taps.weights[k];
    own.zero[p] = taps.zero[k];
  }
}

// --8<-- [start:blend]
// A row of four neighbors, of two rows of the photograph or of one. words: the
// image's first.
template <bool both>
__device__ __forceinline__ void blend(float (&v)[3][PIXELS],
                                      const unsigned* words, const Row& row,
                                      const Columns& own, const Scale& scale) {
#pragma unroll
  for (int p = 0; p < PIXELS; ++p) {
    const unsigned at = own.at[p], weights = own.weights[p];
    float sum[3], more[3];
    dots(sum, words, row.up + at, weights, own.zero[p]);
    if (both) dots(more, words, row.down + at, weights, own.zero[p]);
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
// pixels: at a multiple of 16 bytes, 12 bytes longer than its images, each of
// which has fewer than 2^32 - 4 bytes.
extern "C" __global__ void __launch_bounds__(ACROSS* DOWN, HELD)
    letterbox_dots(const unsigned char* __restrict__ pixels,
                   const Image* __restrict__ images, Scale scale, int height,
                   int width, __nv_bfloat16* __restrict__ out) {
  __shared__ Taps taps;
  const int of = CENTER ? blockIdx.y : blockIdx.z;
  Image image = images[of];
  // Columns count from here on, and what lies before comes last. A multiple of
  // 16: stores begin at whole sectors as before.
  const int start = TURN ? image.left & ~15 : 0;
  image.left -= start;
  const int left = blockIdx.x * WIDE, top = tile_row() * HIGH;
  const unsigned char* const first = pixels + image.first;
  const bool any =  // of the image, in this tile
      left < image.left + image.new_width && left + WIDE > image.left &&
      top < image.top + image.new_height && top + HIGH > image.top;
  Columns own;
  if (any) {
    find(taps, image, left, top, first, scale);
    __syncthreads();
    if (KEEP) load(own, taps);
  }
  const auto* const words = (const unsigned*)((size_t)first & ~(size_t)3);
  const long long plane = (long long)height * width;
  const long long row = (long long)DOWN * width * (CHANNELS_LAST ? 3 : 1);
  const auto turned = [&](int p) {  // the column of the output
    const int x = left + column(p) + start;
    return TURN && x >= width ? x - width : x;
  };
  __nv_bfloat16* to =
      place(out, of, top + threadIdx.y, turned(0), height, width);
#pragma unroll 1
  for (int r = 0; r < ROWS; ++r, to += row) {
    const int i = r * DOWN + threadIdx.y, y = top + i;
    if (y >= height) return;
    float v[3][PIXELS];
    if (any && inside(y, image.top, image.new_height)) {
      if (!KEEP) load(own, taps);
      const Row rows = taps.row[i];  // a warp has one row: no divergence
      if (rows.below > 0)
        blend<true>(v, words, rows, own, scale);
      else
        blend<false>(v, words, rows, own, scale);
    } else {
#pragma unroll
      for (int p = 0; p < PIXELS; ++p)
#pragma unroll
        for (int c = 0; c < 3; ++c) v[c][p] = scale.border[c];
    }
#pragma unroll
    for (int p = 0; p < PIXELS; p += NEIGHBORS) {
      const int away = turned(p) - turned(0);
      if (left + column(p) < width)
        store<NEIGHBORS>(v, p, to + (CHANNELS_LAST ? 3 : 1) * away, plane);
    }
  }
}
// --8<-- [end:kernel]
