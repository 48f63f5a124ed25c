// y = x W^T for a few rows of x, W as bf16 or quantized: what a step of decode
// consists of. Each byte of W is read once, as fast as memory delivers it.
// requires: sm_80
// @instance gemv<Q4_1, 128, 2, 4, float, false>
// @instance gemv<Q4_1, 64, 2, 3, float, true>
// @instance gemv<Q4_1, 32, 4, 3, __nv_bfloat16, false>
// @instance gemv<Q4_1, 16, 8, 4, __nv_bfloat16, false>
// @instance gemv<Q8_0, 128, 2, 4, float, true>
// @instance gemv<Q8_0, 64, 2, 3, float, false>
// @instance gemv<Q8_0, 16, 8, 4, __nv_bfloat16, false>
// @instance gemv<BF16, 128, 2, 3, float, false>
// @instance gemv<BF16, 32, 4, 3, __nv_bfloat16, false>
// @instance gemv<BF16, 16, 8, 4, float, true>
#include <cuda_fp16.h>

#include "mma.cuh"

// The tensor cores do the sums, not for their speed but because 8 rows of x
// then cost what one costs: they are the 8 columns of B in an mma, 16 outputs
// are the rows of A. Rows of x that are missing are zeros. A row's result does
// not depend on the other rows.
//
// Four lanes share a row of A and a column of B. Which of them has which depths
// does not matter, as long as it is the same in both: of every 32 depths lane t
// takes 4t to 4t + 3 and 16 + 4t to 16 + 4t + 3. For Q4_1 these are the low and
// the high halves of one word.

// --8<-- [start:magic]
// 128 to 255 in bf16 are 0x4300 to 0x437f, one step each: 7 bits of a byte are
// a number as soon as the byte stands under 0x43, plus 128. Bytes 0 and 1 of a
// word, or 2 and 3, each under 0x43:
__device__ __forceinline__ unsigned under_43(unsigned word, bool upper) {
  return __byte_perm(word, 0x43434343, upper ? 0x4342 : 0x4140);
}
// a - b of two pairs of bf16.
__device__ __forceinline__ unsigned subtract(unsigned a, unsigned b) {
  const __nv_bfloat162 difference =
      __hsub2(reinterpret_cast<const __nv_bfloat162&>(a),
              reinterpret_cast<const __nv_bfloat162&>(b));
  return reinterpret_cast<const unsigned&>(difference);
}
// --8<-- [end:magic]

// How W is stored: the bytes of a block of 32 weights of a row; SPAN: depths of
// a row that are copied at a time, a multiple of 16 bytes; PITCH: bytes between
// rows in shared memory, so that what 8 rows are read at is in different banks.
// weights(): this lane's 8 weights of a block, by pairs, as bf16; what is still
// to be done with their sum is told by NUMBERS: 0, nothing; 1, multiply it by
// scale().x; 2, then add scale().y times the sum of x.

// --8<-- [start:q4_1]
// The scale d and the minimum m in fp16, then 32 numbers of 4 bits, number j
// and j + 16 in one byte: w = d q + m. The 128 too much in q are no trouble:
// for m the sum of x is needed anyway.
struct Q4_1 {
  static constexpr int BLOCK = 20, NUMBERS = 2, SPAN = 512, PITCH = 336;
  static __device__ __forceinline__ void weights(unsigned (&to)[4],
                                                 const unsigned char* block,
                                                 int t) {
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
// The scale d in fp16, then 32 int8: w = d q. With 34 bytes a block, and so a
// word of it, begins anywhere at a multiple of 2: no load from global memory
// could take more than 2 bytes. Shared memory is what puts this right: copies
// of 16 bytes bring whatever lies there, and a word is cut out of two. Nothing
// has to be repacked.
struct Q8_0 {
  static constexpr int BLOCK = 34, NUMBERS = 1, SPAN = 256, PITCH = 304;
  static __device__ __forceinline__ void weights(unsigned (&to)[4],
                                                 const unsigned char* block,
                                                 int t) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const unsigned char* const at = block + 2 + half * 16 + t * 4;
      const int off = (size_t)at % 4;  // 0 or 2
      const unsigned* const words = reinterpret_cast<const unsigned*>(at - off);
      const unsigned word = __funnelshift_r(words[0], words[1], off * 8);
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        // q is its 7 lower bits, less 128 if the sign is set. The sign, where
        // it stands, makes 256 of 0x4300's 128.
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
                                                 int t) {
    const uint2* const pairs = reinterpret_cast<const uint2*>(block);
    const uint2 first = pairs[t], second = pairs[4 + t];
    to[0] = first.x, to[1] = first.y, to[2] = second.x, to[3] = second.y;
  }
};
// --8<-- [end:bf16]

// y = x W^T, or y += x W^T with ADD. x: rows x inputs; W: outputs x inputs, a
// row's blocks side by side; y: rows x outputs. inputs: a multiple of 32, for
// BF16 of 8. x and W begin at multiples of 16 bytes. Grid: x over OUTPUTS
// outputs each, y over 8 rows of x each, which read W again. A block walks
// along the depth in spans, STAGES - 1 of them on their way while one is
// multiplied. PARTS warps share the depth of the same 16 outputs. Dynamic
// shared memory: STAGES * (OUTPUTS * PITCH + 8 * (2 * SPAN + 32)) bytes.
//
// The order of a sum depends on PARTS and inputs alone.
// --8<-- [start:kernel]
template <class Format, int OUTPUTS, int PARTS, int STAGES, class Out, bool ADD>
__global__ void
// 16 warps an SM, in one block or two: 128 registers a thread.
__launch_bounds__(OUTPUTS / 16 * PARTS * 32, 16 / (OUTPUTS / 16 * PARTS))
    gemv(const __nv_bfloat16* __restrict__ x, const void* __restrict__ W,
         Out* __restrict__ y, int rows, int outputs, int inputs) {
  constexpr int WARPS = OUTPUTS / 16 * PARTS, THREADS = WARPS * 32;
  constexpr int BLOCK = Format::BLOCK, SPAN = Format::SPAN;
  constexpr int PITCH = Format::PITCH, BYTES = SPAN / 32 * BLOCK;
  constexpr int X_PITCH = SPAN * 2 + 32;
  constexpr int OF_W = OUTPUTS * PITCH, STAGE = OF_W + 8 * X_PITCH;
  static_assert(BYTES % 16 == 0 && PITCH % 16 == 0, "pieces of 16 bytes");
  extern __shared__ __align__(128) unsigned char shared[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int first = blockIdx.x * OUTPUTS;
  x += (size_t)blockIdx.y * 8 * inputs;
  y += (size_t)blockIdx.y * 8 * outputs;
  rows = min(8, rows - (int)blockIdx.y * 8);

  // --8<-- [start:copy]
  // Rows of W begin anywhere, copies at multiples of 16: a copy begins up to 15
  // bytes early, and the row as many bytes later in shared memory. Zeros stand
  // for what lies behind the row. A warp copies a row with one instruction, and
  // every row that it copies begins equally early.
  const int row_bytes = (int)((long long)inputs * BLOCK / 32);
  const int spans = (inputs + SPAN - 1) / SPAN;
  const auto early_of = [&](int r) {
    return (int)((long long)(first + r) * row_bytes % 16);
  };
  static_assert(WARPS % 8 == 0 && BLOCK % 2 == 0, "equally early");
  static_assert(BYTES + (BLOCK % 16 ? 14 : 0) <= 32 * 16, "one instruction");
  const int early = early_of(warp), piece = lane * 16;
  const unsigned char* const from = static_cast<const unsigned char*>(W) +
                                    (long long)(first + warp) * row_bytes -
                                    early + piece;
  const auto copy = [&](int span) {
    if (span < spans) {
      unsigned char* const stage = shared + span % STAGES * STAGE;
      const unsigned to = shared_address(stage + warp * PITCH + piece);
      const int left = row_bytes - span * BYTES + early - piece;
      if (piece < BYTES + early) {
#pragma unroll
        for (int r = 0; r < OUTPUTS; r += WARPS)
          if (first + warp + r < outputs)
            copy16(to + r * PITCH,
                   from + (long long)r * row_bytes + span * BYTES,
                   max(0, min(16, left)));
      }
#pragma unroll
      for (int i = 0; i < SPAN; i += THREADS) {
        const int piece = i + threadIdx.x;  // of x
        if (SPAN % THREADS && piece >= SPAN) break;
        const int r = piece / (SPAN / 8), k = piece % (SPAN / 8) * 8;
        const bool inside = r < rows && span * SPAN + k < inputs;
        copy16(shared_address(stage + OF_W + r * X_PITCH + k * 2),
               x + (size_t)r * inputs + span * SPAN + k, inside ? 16 : 0);
      }
    }
    commit();
  };
  // --8<-- [end:copy]

  // --8<-- [start:multiply]
  // Of an mma's D a lane has outputs g and g + 8, of rows 2t and 2t + 1 of x.
  const int g = lane / 4, t = lane % 4;
  const int strip = warp / PARTS * 16, part = warp % PARTS;
  const int at_low = (strip + g) * PITCH + early_of(strip + g);
  const int at_high = (strip + g + 8) * PITCH + early_of(strip + g + 8);
  float sum[4] = {};
#pragma unroll 1
  for (int span = 0; span < STAGES - 1; ++span) copy(span);
  for (int span = 0; span < spans; ++span) {
    wait_for_all_but<STAGES - 2>();
    __syncthreads();  // this span is there for all, the one before it is free
    copy(span + STAGES - 1);
    const unsigned char* const stage = shared + span % STAGES * STAGE;
    const int blocks = (min(SPAN, inputs - span * SPAN) + 31) / 32;
#pragma unroll 4
    for (int b = part; b < blocks; b += PARTS) {
      const unsigned char* const block_low = stage + at_low + b * BLOCK;
      const unsigned char* const block_high = stage + at_high + b * BLOCK;
      unsigned low[4], high[4];
      Format::weights(low, block_low, t);
      Format::weights(high, block_high, t);
      const uint2* const pairs =
          reinterpret_cast<const uint2*>(stage + OF_W + g * X_PITCH + b * 64);
      const uint2 x_first = pairs[t], x_second = pairs[4 + t];
      const unsigned w_first[4] = {low[0], high[0], low[1], high[1]};
      const unsigned w_second[4] = {low[2], high[2], low[3], high[3]};
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
  // --8<-- [end:multiply]

  // --8<-- [start:merge]
  // The parts of a sum meet in shared memory; a thread adds them in order.
  // With 4 words of padding a warp's stores go to 32 different banks.
  __syncthreads();
  constexpr int LINE = OUTPUTS + 4;
  float* const merged = reinterpret_cast<float*>(shared);  // [PARTS][8][LINE]
#pragma unroll
  for (int i = 0; i < 4; ++i)
    merged[(part * 8 + 2 * t + i % 2) * LINE + strip + g + i / 2 * 8] = sum[i];
  __syncthreads();
  for (int i = threadIdx.x; i < 8 * OUTPUTS; i += THREADS) {
    const int row = i / OUTPUTS, output = i % OUTPUTS;
    if (row >= rows || first + output >= outputs) continue;
    float result = 0.0f;
#pragma unroll
    for (int p = 0; p < PARTS; ++p)
      result += merged[(p * 8 + row) * LINE + output];
    Out* const to = y + (size_t)row * outputs + first + output;
    if constexpr (ADD) result += *to;
    *to = Out(result);
  }
  // --8<-- [end:merge]
}
// --8<-- [end:kernel]
