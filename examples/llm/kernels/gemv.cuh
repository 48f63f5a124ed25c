// What gemv.cu and fused.cu share: how W is stored, how a block brings it into
// shared memory, and how 8 rows of x are multiplied by it on the tensor cores.
//
//   under_43, subtract  bytes of W as numbers in bf16
//   Q4_1, Q8_0, BF16    the formats of W: where a weight is, and its scale
//   Matrix              copies spans of W into shared memory
//   Count               a number as a type
//   add_blocks          multiplies a block of W
//   add_span            multiplies a span, adds to the sums of a warp
//   put_sums, merge     join the sums of the warps that share a depth
#pragma once
#include <cuda_fp16.h>

#include "ptx/mma.cuh"

// The tensor cores compute the sums, not for their speed but because 8 rows of
// x then cost as much as one: the rows are the 8 columns of B in an mma, 16
// outputs are the rows of A. Zeros stand for missing rows of x. A row's result
// does not depend on the other rows.
//
// Four lanes share a row of A and a column of B. Which lane has which depths
// does not matter, as long as it is the same in both: of every 32 depths lane t
// takes 4t to 4t + 3 and 16 + 4t to 16 + 4t + 3. For Q4_1 these are the low and
// the high halves of one word.

// --8<-- [start:magic]
// --8<-- [start:under]
// The numbers 128 to 255 in bf16 are 0x4300 to 0x437f, in steps of one. So 7
// bits of a byte are a number, plus 128, as soon as 0x43 stands above the byte.
// Puts 0x43 above bytes 0 and 1 of a word, or above bytes 2 and 3 (upper):
__device__ __forceinline__ unsigned under_43(unsigned word, bool upper) {
  return __byte_perm(word, 0x43434343, upper ? 0x4342 : 0x4140);
}
// --8<-- [end:under]
// a - b for two pairs of bf16.
__device__ __forceinline__ unsigned subtract(unsigned a, unsigned b) {
  const __nv_bfloat162 difference =
      __hsub2(reinterpret_cast<const __nv_bfloat162&>(a),
              reinterpret_cast<const __nv_bfloat162&>(b));
  return reinterpret_cast<const unsigned&>(difference);
}
// --8<-- [end:magic]

// A format says how W is stored.
//
// BLOCK: bytes of a block of 32 weights of a row.
// SPAN: depths of a row that are copied at a time, a multiple of 16 bytes:
//   memory delivers long pieces faster than short ones.
// PITCH: bytes between rows in shared memory, chosen so that 8 rows are read
//   from different banks.
// NUMBERS: what a block's sum still needs: 0, nothing; 1, it is multiplied by
//   scale().x; 2, then scale().y times the sum of x is added.
//
// weights(): this lane's 8 weights of a block in pairs of bf16. t: lane % 4.
// off: how many bytes the block's third byte lies behind a multiple of 4.

// --8<-- [start:q4_1]
// Q4_1: the scale d and the minimum m in fp16, then 32 numbers q of 4 bits,
//   q[j] and q[j + 16] in one byte: w = d q + m. The 128 too much in q do no
//   harm: m needs the sum of x anyway.
struct Q4_1 {
  static constexpr int BLOCK = 20, NUMBERS = 2, SPAN = 768, PITCH = 496;
  static __device__ __forceinline__ void weights(unsigned (&to)[4],
                                                 const unsigned char* block,
                                                 int t, int off) {
    const unsigned word = reinterpret_cast<const unsigned*>(block + 4)[t];
    const unsigned low = word & 0x0f0f0f0f, high = word >> 4 & 0x0f0f0f0f;
    to[0] = under_43(low, false), to[1] = under_43(low, true);
    to[2] = under_43(high, false), to[3] = under_43(high, true);
  }
  // The weights are d (q + 128) + m - 128 d.
  static __device__ __forceinline__ float2 scale(const unsigned char* block) {
    const float2 both =
        __half22float2(*reinterpret_cast<const __half2*>(block));
    return make_float2(both.x, both.y - 128.0f * both.x);
  }
};
// --8<-- [end:q4_1]

// --8<-- [start:q8_0]
// Q8_0: the scale d in fp16, then 32 int8: w = d q. A block has 34 bytes, so a
//   word of it begins at any multiple of 2, and a load from global memory could
//   take only 2 bytes. Shared memory puts this right: copies of 16 bytes bring
//   whatever lies there, and a word is cut out of two. Nothing has to be
//   repacked.
struct Q8_0 {
  static constexpr int BLOCK = 34, NUMBERS = 1, SPAN = 512, PITCH = 560;
  static __device__ __forceinline__ void weights(unsigned (&to)[4],
                                                 const unsigned char* block,
                                                 int t, int off) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const unsigned* const words = reinterpret_cast<const unsigned*>(
          block + 2 - off + half * 16 + t * 4);
      const unsigned word = __funnelshift_r(words[0], words[1], off * 8);
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        // q is its 7 lower bits, less 128 if the sign bit is set. This bit,
        // where it stands, makes 256 of the 128 in 0x4300.
        const unsigned both = under_43(word, pair);
        to[2 * half + pair] = subtract(both & 0xff7fff7f, both & 0xff80ff80);
      }
    }
  }
  static __device__ __forceinline__ float2 scale(const unsigned char* block) {
    return make_float2(__half2float(*reinterpret_cast<const __half*>(block)),
                       0.0f);
  }
};
// --8<-- [end:q8_0]

// --8<-- [start:bf16]
struct BF16 {
  static constexpr int BLOCK = 64, NUMBERS = 0, SPAN = 256, PITCH = 544;
  static __device__ __forceinline__ void weights(unsigned (&to)[4],
                                                 const unsigned char* block,
                                                 int t, int off) {
    const uint2* const pairs = reinterpret_cast<const uint2*>(block);
    const uint2 first = pairs[t], second = pairs[4 + t];
    to[0] = first.x, to[1] = first.y, to[2] = second.x, to[3] = second.y;
  }
};
// --8<-- [end:bf16]

// --8<-- [start:copy]
// Copies W, in one of the Formats, into shared memory for a block of WARPS
// warps that has the outputs from `first` on: spans of OUTPUTS rows.
//
// Rows of W begin anywhere, but copies begin at multiples of 16 bytes. So a
// copy begins up to 15 bytes early, and the row begins as many bytes later in
// shared memory. Zeros stand for what lies behind the row. A warp copies a
// row's span with one instruction or two, and all rows of a warp begin equally
// early.
//
// The fewer instructions a copy takes, the more time is left for products: what
// is the same for all spans is computed once, and a warp whose rows all exist
// does not check each of them.
template <class Format, int OUTPUTS, int WARPS>
struct Matrix {
  static constexpr int BLOCK = Format::BLOCK, PITCH = Format::PITCH;
  static constexpr int BYTES = Format::SPAN / 32 * BLOCK;  // of a row's span
  static constexpr int LATEST = BLOCK % 16 ? 14 : 0;       // most of `early`
  static constexpr int ROWS = OUTPUTS / WARPS;             // rows of a warp
  static_assert(BYTES % 16 == 0 && PITCH % 16 == 0, "pieces of 16 bytes");
  static_assert(WARPS % 8 == 0 && BLOCK % 2 == 0, "equally early");
  static_assert(BYTES + LATEST <= PITCH, "room for a row");

  const unsigned char* from;  // this lane's first piece
  long long step;             // from one row of this warp to its next
  int row_bytes, early, first, there, to, left;

  __device__ __forceinline__ Matrix(const void* W, int first, int outputs,
                                    int inputs)
      : row_bytes((int)((long long)inputs * BLOCK / 32)), first(first) {
    const int warp = threadIdx.x / 32, piece = threadIdx.x % 32 * 16;
    early = early_of(warp);
    from = static_cast<const unsigned char*>(W) +
           (long long)(first + warp) * row_bytes - early + piece;
    step = (long long)WARPS * row_bytes;
    there = (outputs - first - warp + WARPS - 1) / WARPS;  // or more
    to = warp * PITCH + piece;
    left = row_bytes + early - piece;
  }

  __device__ __forceinline__ int early_of(int r) const {
    return (int)((long long)(first + r) * row_bytes % 16);
  }

  // Where output r begins in a stage. Output r + 8 begins 8 * PITCH bytes
  // later.
  __device__ __forceinline__ int at(int r) const {
    return r * PITCH + early_of(r);
  }

  __device__ __forceinline__ void copy(unsigned char* stage, int span) const {
    const unsigned char* source = from + span * BYTES;
    unsigned target = shared_address(stage + to);
#pragma unroll
    for (int k = 0; k < BYTES + LATEST; k += 32 * 16) {  // once or twice
      const int size = max(0, min(16, left - span * BYTES - k));
      const int piece = threadIdx.x % 32 * 16 + k;
      if (piece < BYTES + early) {
        const unsigned char* row = source + k;
        if (there >= ROWS) {
#pragma unroll
          for (int r = 0; r < ROWS; ++r, row += step)
            copy16(target + k + r * WARPS * PITCH, row, size);
        } else {
#pragma unroll 1
          for (int r = 0; r < there; ++r, row += step)
            copy16(target + k + r * WARPS * PITCH, row, size);
        }
      }
    }
  }
};
// --8<-- [end:copy]

// A number as a type, so that a lambda can get it as a constant.
template <int N>
struct Count {
  static constexpr int value = N;
};

// --8<-- [start:multiply]
// Adds the products of N blocks of a Format, which lie PARTS blocks apart, to
// the sums of this warp's 16 outputs. low: the first block of output g; that of
// output g + 8 lies 8 * PITCH bytes behind, and begins equally early. x: the
// elements of row g of x that belong to this block. off: as `weights` takes it.
// With g = lane / 4 and t = lane % 4, sum[0] and sum[1] are those of output g
// and rows 2t and 2t + 1 of x, sum[2] and sum[3] those of output g + 8.
template <class Format, int PARTS, int N>
__device__ __forceinline__ void add_blocks(float (&sum)[4],
                                           const unsigned char* low,
                                           const unsigned char* x, int off) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    // An even number of blocks lies between two, so `off` is the same for all.
    static_assert(PARTS % 2 == 0);
    const unsigned char* const block_low = low + i * PARTS * Format::BLOCK;
    const unsigned char* const block_high = block_low + 8 * Format::PITCH;
    unsigned of_g[4], of_g8[4];
    Format::weights(of_g, block_low, t, off);
    Format::weights(of_g8, block_high, t, off);
    const uint2* const pairs =
        reinterpret_cast<const uint2*>(x + i * PARTS * 64);
    const uint2 x_first = pairs[t], x_second = pairs[4 + t];
    const unsigned w_first[4] = {of_g[0], of_g8[0], of_g[1], of_g8[1]};
    const unsigned w_second[4] = {of_g[2], of_g8[2], of_g[3], of_g8[3]};
    if constexpr (Format::NUMBERS == 0) {
      mma(sum, w_first, x_first.x, x_first.y);
      mma(sum, w_second, x_second.x, x_second.y);
    } else {
      float product[4] = {};
      mma(product, w_first, x_first.x, x_first.y);
      mma(product, w_second, x_second.x, x_second.y);
      const float2 of_low = Format::scale(block_low);
      const float2 of_high = Format::scale(block_high);
      sum[0] += of_low.x * product[0], sum[1] += of_low.x * product[1];
      sum[2] += of_high.x * product[2], sum[3] += of_high.x * product[3];
      if constexpr (Format::NUMBERS == 2) {
        // The sums of x are a product too: with ones.
        constexpr unsigned ONES = 0x3f803f80;
        const unsigned ones[4] = {ONES, ONES, ONES, ONES};
        float total[4] = {};
        mma(total, ones, x_first.x, x_first.y);
        mma(total, ones, x_second.x, x_second.y);
        sum[0] += of_low.y * total[0], sum[1] += of_low.y * total[1];
        sum[2] += of_high.y * total[2], sum[3] += of_high.y * total[3];
      }
    }
  }
}

// Adds the products of blocks part, part + PARTS, ... of a span, which has
// `blocks` blocks of a Format. low: where output g begins in the span; x: where
// row g of x does. Four blocks are added at a time, so that one waits while
// another is multiplied.
template <class Format, int PARTS>
__device__ __forceinline__ void add_span(float (&sum)[4],
                                         const unsigned char* low,
                                         const unsigned char* x, int part,
                                         int blocks) {
  int left = (blocks - part + PARTS - 1) / PARTS;
  low += part * Format::BLOCK, x += part * 64;
  const int off = (size_t)(low + 2) % 4;
  const auto add = [&](auto n) {
    constexpr int N = decltype(n)::value;
    add_blocks<Format, PARTS, N>(sum, low, x, off);
    low += N * PARTS * Format::BLOCK, x += N * PARTS * 64, left -= N;
  };
#pragma unroll 1
  while (left >= 4) add(Count<4>());
  if (left >= 2) add(Count<2>());
  if (left >= 1) add(Count<1>());
}
// --8<-- [end:multiply]

// --8<-- [start:merge]
// The parts of a sum meet in shared memory, [PARTS][8][OUTPUTS + 4]: 4 words of
// padding send a warp's stores to 32 different banks. strip: the first of this
// warp's 16 outputs.
template <int OUTPUTS>
__device__ __forceinline__ void put_sums(float* merged, const float (&sum)[4],
                                         int strip, int part) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    merged[(part * 8 + 2 * t + i % 2) * (OUTPUTS + 4) + strip + g + i / 2 * 8] =
        sum[i];
}

// Adds the parts of a sum in their order.
template <int OUTPUTS, int PARTS>
__device__ __forceinline__ float merge(const float* merged, int row,
                                       int output) {
  float result = 0.0f;
#pragma unroll
  for (int p = 0; p < PARTS; ++p)
    result += merged[(p * 8 + row) * (OUTPUTS + 4) + output];
  return result;
}
// --8<-- [end:merge]
