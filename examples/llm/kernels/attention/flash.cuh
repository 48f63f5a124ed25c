// The parts of flash.cu: instructions that mma.cuh does not have, tiles in
// shared memory, what happens to scores, and where results go.
#pragma once
#include "llm/kernels/fp8.cuh"
#include "ptx/mma.cuh"

__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

__device__ __forceinline__ void store_shared(unsigned to, uint4 words) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to),
               "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w)
               : "memory");
}

__device__ __forceinline__ uint4 load_shared(unsigned from) {
  uint4 words;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "r"(from)
               : "memory");
  return words;
}

// Two numbers rounded to bf16 in one word, the first in the lower half.
__device__ __forceinline__ unsigned pack(float first, float second) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
}

// 2^x and 1 / x with an error of about 1e-7 of the value: one instruction each.
__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// --8<-- [start:layout]
// A tile in shared memory is rows of D elements in chunks of 16 bytes. ldmatrix
// reads 8 rows of one chunk column at a time, and they should lie in 8
// different groups of 4 banks: so chunk c of a row stands at c ^ x, where x
// differs among the rows that would meet in the same banks. The XOR stays
// within a group of chunks, as large as a power of two up to 8 allows that
// divides their number.
template <int D>
struct Layout {
  static constexpr unsigned CHUNKS = D / 8, ROW = D * 2;  // bytes of a row
  static constexpr unsigned GROUP = CHUNKS % 8 == 0   ? 8
                                    : CHUNKS % 4 == 0 ? 4
                                                      : 2;

  static __device__ __forceinline__ unsigned place(unsigned row,
                                                   unsigned chunk) {
    return row * ROW + (chunk ^ row / (8 / GROUP) % GROUP) * 16;
  }

  // From the place of chunk 0 or 1 to that of the chunk 2 * pairs further on.
  static __device__ __forceinline__ unsigned right(unsigned at,
                                                   unsigned pairs) {
    return (at ^ pairs * 2 % GROUP * 16) + pairs * 2 / GROUP * GROUP * 16;
  }
};
// --8<-- [end:layout]

// --8<-- [start:copy-tile]
// Start to copy ROWS rows of `d` elements into a tile: line i of the tile is
// row row_of(i) in memory, and must be there; beyond d stand zeros. ALIGNED:
// rows begin at multiples of 16 bytes, and d is a multiple of 8. Other rows go
// element by element through registers, which is slow.
template <int D, int ROWS, int THREADS, bool ALIGNED, class Row>
__device__ __forceinline__ void copy_tile(unsigned to,
                                          const __nv_bfloat16* from, int stride,
                                          int d, Row&& row_of) {
  // Threads on a line: a power of two, even if some of them have nothing to do.
  // So each keeps its chunk, and the addresses differ by constants.
  constexpr unsigned CHUNKS = Layout<D>::CHUNKS, LANES = CHUNKS <= 2    ? 2
                                                         : CHUNKS <= 4  ? 4
                                                         : CHUNKS <= 8  ? 8
                                                         : CHUNKS <= 16 ? 16
                                                                        : 32;
  static_assert(ROWS % (THREADS / LANES) == 0, "tiles");
  const unsigned chunk = threadIdx.x % LANES;
  if (chunk >= CHUNKS) return;
  const int count = min(8, max(0, d - (int)chunk * 8));
#pragma unroll
  for (unsigned first = 0; first < ROWS; first += THREADS / LANES) {
    const unsigned line = first + threadIdx.x / LANES;
    const unsigned at = to + Layout<D>::place(line, chunk);
    const __nv_bfloat16* const x =
        from + (long long)row_of(line) * stride + chunk * 8;
    if (ALIGNED) {
      copy16(at, x, count * 2);
    } else {
      unsigned bits[8] = {};
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if (e < count) bits[e] = __bfloat16_as_ushort(x[e]);
      store_shared(
          at, make_uint4(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16,
                         bits[4] | bits[5] << 16, bits[6] | bits[7] << 16));
    }
  }
}
// --8<-- [end:copy-tile]

// A tile of FP8 rows, of which d is a multiple of 16, is copied as it is; when
// it is there, each thread makes bf16 of what it has copied itself, so that
// until then it waits for no other.
// --8<-- [start:fp8-tile]
template <int D>  // threads on a line, a power of two
constexpr unsigned FP8_LANES = D <= 32    ? 2
                               : D <= 64  ? 4
                               : D <= 128 ? 8
                                          : 16;

template <int D, int ROWS, int THREADS, bool ALIGNED, class Row>
__device__ __forceinline__ void copy_tile(unsigned to,
                                          const __nv_fp8_e4m3* from, int stride,
                                          int d, Row&& row_of) {
  constexpr unsigned LANES = FP8_LANES<D>, TOGETHER = THREADS / LANES;
  static_assert(ALIGNED && ROWS % TOGETHER == 0, "tiles");
  const unsigned line = threadIdx.x / LANES, chunk = threadIdx.x % LANES;
  const int count = (int)chunk * 16 < d ? 16 : 0;
  if (chunk * 16 >= D) return;
#pragma unroll
  for (unsigned i = 0; i < ROWS / TOGETHER; ++i)
    copy16(to + (i * THREADS + threadIdx.x) * 16,
           from + (long long)row_of(i * TOGETHER + line) * stride + chunk * 16,
           count);
}

template <int D, int ROWS, int THREADS>
__device__ __forceinline__ void widen_tile(unsigned to, unsigned from) {
  constexpr unsigned LANES = FP8_LANES<D>, TOGETHER = THREADS / LANES;
  const unsigned line = threadIdx.x / LANES, chunk = threadIdx.x % LANES;
  if (chunk * 16 >= D) return;
#pragma unroll
  for (unsigned i = 0; i < ROWS / TOGETHER; ++i) {
    const uint4 x = load_shared(from + (i * THREADS + threadIdx.x) * 16);
    uint4 low, high;
    widen(x.x, low.x, low.y), widen(x.y, low.z, low.w);
    widen(x.z, high.x, high.y), widen(x.w, high.z, high.w);
    const unsigned row = i * TOGETHER + line;
    store_shared(to + Layout<D>::place(row, chunk * 2), low);
    store_shared(to + Layout<D>::place(row, chunk * 2 + 1), high);
  }
}
// --8<-- [end:fp8-tile]

// Scores, or results, of a warp: MT x NT tiles of 16 queries by 8 keys (or
// columns), of which a lane holds four numbers each, as `mma` has it.

// tanh(x) = 1 - 2 / (e^2x + 1), for all scores. bend: 2 * log2(e) times what
// makes a score x.
template <int MT, int NT>
__device__ __forceinline__ void bend_scores(float (&s)[MT][NT][4], float bend) {
#pragma unroll
  for (int i = 0; i < MT * NT * 4; ++i) {
    float& x = s[i / 4 / NT][i / 4 % NT][i % 4];
    x = 1.0f - 2.0f * reciprocal(power_of_two(x * bend) + 1.0f);
  }
}

// -inf for keys that a query does not see: by selection, since there may be
// anything. first, key: position of this lane's first query, and its first key.
// --8<-- [start:mask]
template <int MT, int NT>
__device__ __forceinline__ void mask(float (&s)[MT][NT][4], int first, int key,
                                     int left, int right, int k_len) {
#pragma unroll
  for (int i = 0; i < MT * NT * 4; ++i) {
    const int row = i / 4 / NT, n = i / 4 % NT, e = i % 4;
    const int at = first + row * 16 + e / 2 * 8, k = key + n * 8 + e % 2;
    if (k < at - left || k > min(at + right, k_len - 1))
      s[row][n][e] = -INFINITY;
  }
}
// --8<-- [end:mask]

// The exponentials of a row of scores are 2^(s * power - base). The base need
// not be the row's maximum: one that is up to 8 less makes exponentials of up
// to 2^8, which neither bf16 nor the sums mind. So bases seldom rise, and what
// has been added up seldom needs its factor. True if one does, of any row of
// the warp: only then do lanes exchange their maxima. The largest of a row's is
// one of them and rounded alike: other rows decide nothing.
// --8<-- [start:bases]
constexpr float LOWEST = -1e38f;  // not -inf, which minus itself is NaN

template <int MT, int NT>
__device__ __forceinline__ bool raise_bases(const float (&s)[MT][NT][4],
                                            float power, float (&base)[MT][2],
                                            float (&factor)[MT][2]) {
  float most[MT][2];
  bool any = false;
#pragma unroll
  for (int i = 0; i < MT * 2; ++i) {  // two rows of a tile
    float x = s[i / 2][0][i % 2 * 2];
#pragma unroll
    for (int n = 0; n < NT; ++n)
      x = fmaxf(x, fmaxf(s[i / 2][n][i % 2 * 2], s[i / 2][n][i % 2 * 2 + 1]));
    most[i / 2][i % 2] = __fmul_rn(x, power);
    any |= most[i / 2][i % 2] - base[i / 2][i % 2] > 8.0f;
  }
  if (!__any_sync(~0u, any)) return false;
#pragma unroll
  for (int i = 0; i < MT * 2; ++i) {
    float x = most[i / 2][i % 2];
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 2));
    float& old = base[i / 2][i % 2];
    const bool rises = x - old > 8.0f;
    factor[i / 2][i % 2] = rises ? power_of_two(old - x) : 1.0f;
    if (rises) old = x;
  }
  return true;
}
// --8<-- [end:bases]

// Results of a warp, divided by their sums, and log-sum-exps. first: the first
// row of this lane, of the q_len that its sequence has from q_start on.
// --8<-- [start:store]
template <bool ALIGNED, int MT, int TILES>
__device__ __forceinline__ void store_results(
    const float (&o)[MT][TILES][4], const float (&base)[MT][2],
    const float (&sum)[MT][2], float by_scale, int first, int q_start,
    int q_len, __nv_bfloat16* out, int out_stride, int d, float* lse, int heads,
    int head) {
#pragma unroll
  for (int i = 0; i < MT * 2; ++i) {
    const int row = first + i / 2 * 16 + i % 2 * 8;
    float total = sum[i / 2][i % 2];
    total += __shfl_xor_sync(~0u, total, 1);
    total += __shfl_xor_sync(~0u, total, 2);
    if (row < 0 || row >= q_len) continue;
    const long long at = q_start + row;
    if (lse && threadIdx.x % 4 == 0)
      lse[at * heads + head] =
          total == 0.0f ? -INFINITY
                        : (base[i / 2][i % 2] + log2f(total)) * 0.693147181f;
    const float inverse = total == 0.0f ? 0.0f : 1.0f / total * by_scale;
    __nv_bfloat16* const to = out + at * out_stride;
#pragma unroll
    for (int n = 0; n < TILES; ++n) {
      const int column = n * 8 + threadIdx.x % 4 * 2;
      const float x = o[i / 2][n][i % 2 * 2] * inverse,
                  y = o[i / 2][n][i % 2 * 2 + 1] * inverse;
      if (ALIGNED) {
        if (column < d) *reinterpret_cast<unsigned*>(to + column) = pack(x, y);
      } else {
        if (column < d) to[column] = __float2bfloat16(x);
        if (column + 1 < d) to[column + 1] = __float2bfloat16(y);
      }
    }
  }
}
// --8<-- [end:store]
