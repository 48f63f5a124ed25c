// Several pixels of the output for each thread: vectors are stored, and the
// columns' weights are made once for several rows.
#include "letterbox.cuh"

#ifndef PIXELS
#define PIXELS 2  // neighbors of a thread; they divide the output's width
#endif
#ifndef ROWS
#define ROWS 4  // of a thread
#endif
#ifndef WORDS
#define WORDS 1  // 1: six bytes of two neighbors as three words, 0: as bytes
#endif
#ifndef BY_BITS
#define BY_BITS 1  // 1: a byte becomes a number by its bits, 0: by a conversion
#endif
#ifndef SKIP
#define SKIP 1  // 1: a row of weight 0 is not read, 0: it is
#endif

// --8<-- [start:bytes]
// Two neighbors: the channels of the first, and then of the second.
struct Pair {
  float at[6];
};

#if BY_BITS  // 2^23 + byte has the byte as its last bits
constexpr float ZERO = 8388608.0f;
#else
constexpr float ZERO = 0.0f;
#endif

// The byte `which` of two words, plus ZERO.
template <int which>
__device__ __forceinline__ float number(unsigned low, unsigned high) {
  const unsigned word = which < 4 ? low : high;
#if BY_BITS
  return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7440 | which % 4));
#else
  return (float)(word >> 8 * (which % 4) & 255u);
#endif
}

// at: the first pixel; second: whether there is another behind it.
__device__ __forceinline__ Pair load_bytes(const unsigned char* at,
                                           bool second) {
  Pair p;
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    p.at[c] = at[c] + ZERO;
    p.at[3 + c] = (second ? at[3 + c] : 0) + ZERO;
  }
  return p;
}

// at: bytes from `words` to the first pixel. Up to 6 bytes behind the second
// are read; what lies behind the image has the weight 0.
__device__ __forceinline__ Pair load_words(const unsigned* words, unsigned at) {
  const unsigned* const w = words + (at >> 2);
  const unsigned a = w[0], b = w[1], c = w[2];
  const unsigned low = __funnelshift_r(a, b, 8 * at);  // by the last 5 bits
  const unsigned high = __funnelshift_r(b, c, 8 * at);
  return {{number<0>(low, high), number<1>(low, high), number<2>(low, high),
           number<3>(low, high), number<4>(low, high), number<5>(low, high)}};
}
// --8<-- [end:bytes]

// --8<-- [start:blend]
// The difference is exact with ZERO, too.
__device__ __forceinline__ float between(float a, float b, float weight,
                                         float zero) {
  return fmaf(weight, b - a, a - zero);
}

// Channel c of the output, from the pairs of two rows.
__device__ __forceinline__ float blend(const Pair& up, const Pair& down,
                                       float across, float along, int c,
                                       const Normalize& scale) {
  const int from = SWAP ? 2 - c : c;
  const float a = between(up.at[from], up.at[3 + from], across, ZERO);
  const float b = between(down.at[from], down.at[3 + from], across, ZERO);
  return fmaf(between(a, b, along, 0.0f), scale.by[c], scale.plus[c]);
}
// --8<-- [end:blend]

// --8<-- [start:rows]
// pixels: at a multiple of 4 bytes, 12 bytes longer than its images, each of
// which has fewer than 2^32 - 4 bytes.
extern "C" __global__ void __launch_bounds__(ACROSS* DOWN)
    letterbox_rows(const unsigned char* __restrict__ pixels,
                   const Image* __restrict__ images, Normalize scale,
                   int height, int width, __nv_bfloat16* __restrict__ out) {
  const int x = (blockIdx.x * ACROSS + threadIdx.x) * PIXELS;
  const int first = blockIdx.y * (DOWN * ROWS) + threadIdx.y;
  if (x >= width) return;
  const Image image = images[blockIdx.z];
  const float across = image.across, down = image.down;
  Tap column[PIXELS];
  bool in[PIXELS], any = false;
#pragma unroll
  for (int p = 0; p < PIXELS; ++p) {
    in[p] = inside(x + p, image.left, image.new_width);
    column[p] = tap(x + p - image.left, across, image.width);
    any |= in[p];
  }
  any &= first < image.top + image.new_height &&
         first + (ROWS - 1) * DOWN >= image.top;
  float border[3];
#pragma unroll
  for (int c = 0; c < 3; ++c)
    border[c] = fmaf(scale.border, scale.by[c], scale.plus[c]);
  const long long plane = (long long)height * width;
  if (!any) {  // nothing but border: no load
    float v[3][PIXELS];
#pragma unroll
    for (int p = 0; p < PIXELS; ++p)
#pragma unroll
      for (int c = 0; c < 3; ++c) v[c][p] = border[c];
    for (int y = first; y < min(first + ROWS * DOWN, height); y += DOWN)
      store<PIXELS>(v, 0, place(out, blockIdx.z, y, x, height, width), plane);
    return;
  }
  const unsigned bytes = image.width * 3u;  // of a row
  const unsigned start = image.first & 3;
  const unsigned char* const from = pixels + (image.first - start);
#if WORDS
  const unsigned* const words = reinterpret_cast<const unsigned*>(from);
#endif
  // All loads are asked for, and no branch parts them: a pixel of the border
  // reads the nearest one of the image.
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const int y = first + r * DOWN;
    const bool row_in = inside(y, image.top, image.new_height);
    const Tap row = tap(y - image.top, down, image.height);
    const bool more = SKIP ? row.weight > 0 : row.lo + 1 < image.height;
    const unsigned a = start + row.lo * bytes, b = more ? a + bytes : a;
    float v[3][PIXELS];
#pragma unroll
    for (int p = 0; p < PIXELS; ++p) {
      const unsigned at = column[p].lo * 3;
#if WORDS
      const Pair up = load_words(words, a + at);
      const Pair low = load_words(words, b + at);
#else
      const bool right = column[p].lo + 1 < image.width;
      const Pair up = load_bytes(from + a + at, right);
      const Pair low = load_bytes(from + b + at, right);
#endif
      const bool here = row_in && in[p];
#pragma unroll
      for (int c = 0; c < 3; ++c) {
        const float found =
            blend(up, low, column[p].weight, row.weight, c, scale);
        v[c][p] = here ? found : border[c];
      }
    }
    if (y < height)
      store<PIXELS>(v, 0, place(out, blockIdx.z, y, x, height, width), plane);
  }
}
// --8<-- [end:rows]
