// The parts of flash.cu and flash_parts.cu beside their products.
//
//   wait_for_copies              until all of this thread's copies have arrived
//   store_shared, load_shared    16 bytes of shared memory by its address
//   Layout                       where a chunk of a tile lies in shared memory
//   copy_tile                    starts to copy rows into a tile
//   widen_tile                   makes a tile of bf16 from one of FP8
//   bend_scores                  the softcap
//   mask                         -inf for keys that a query does not see
//   raise_bases                  rescales, as an online softmax has to
//   store_results                divides by the sums and stores, with the lse
#pragma once
#include "llm/kernels/fp8.cuh"
#include "ptx/mma.cuh"
#include "ptx/special.cuh"

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

// --8<-- [start:layout]
// A tile in shared memory is rows of D elements in chunks of 16 bytes. ldmatrix
// reads the same chunk of 8 rows at a time, and these should lie in 8 different
// groups of 4 banks. So chunk c of a row stands at c ^ x, where x differs among
// the rows that would meet in the same banks. The XOR moves a chunk within a
// group of chunks: the largest power of two up to 8 that divides their number.
// D: elements of a row, a multiple of 16.
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

  // The place that lies 2 * pairs chunks to the right of `at`, which is the
  // place of chunk 0 or 1 of a row.
  static __device__ __forceinline__ unsigned right(unsigned at,
                                                   unsigned pairs) {
    return (at ^ pairs * 2 % GROUP * 16) + pairs * 2 / GROUP * GROUP * 16;
  }
};
// --8<-- [end:layout]

// --8<-- [start:copy-tile]
// Starts to copy ROWS rows of `d` elements into a tile with rows of D elements.
// Line i of the tile is row row_of(i) in memory, which must exist; zeros stand
// for columns from d on. THREADS: of the block. ALIGNED: rows begin at
// multiples of 16 bytes, and d is a multiple of 8. Other rows go through
// registers element by element, which is slow. Row: the type of the function
// row_of.
template <int D, int ROWS, int THREADS, bool ALIGNED, class Row>
__device__ __forceinline__ void copy_tile(unsigned to,
                                          const __nv_bfloat16* from, int stride,
                                          int d, Row&& row_of) {
  // Threads on a line are a power of two, even if some have nothing to do: so
  // each thread keeps its chunk, and its addresses differ by constants.
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

// copy_tile for FP8 copies rows as they are; d is a multiple of 16, and ALIGNED
// has to be true. When they have arrived, widen_tile makes bf16 of them. A
// thread widens what it has copied itself, so it need not wait for other
// threads before.
// --8<-- [start:fp8-tile]
template <int D>  // threads on a line: a power of two
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

// Below, a warp has MT x NT tiles of scores (or MT x TILES of results): 16
// queries by 8 keys (or columns) each. A lane holds four numbers of each, as
// `mma` wants.

// bend_scores: x becomes tanh(c x) for all scores x, where c makes a score of a
// product, by tanh(y) = 1 - 2 / (e^2y + 1). bend: 2 * log2(e) * c.

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

// -inf for the keys that a query does not see. This is a selection and no sum,
// because a score may be anything, even NaN. first: position of this lane's
// first query; key: number of its first key. left, right: how many keys a query
// sees before and behind its own.
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
// to 2^8, which neither bf16 nor the sums mind. So bases seldom rise, and
// earlier sums seldom need a factor. Returns true if the base of any row of the
// warp rises; only then do lanes exchange their maxima. The new base is the
// row's largest score, rounded as all lanes round it, so no other row changes a
// row's bits.
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

// Divides the results of a warp by their sums and stores them, and
// log-sum-exps. first: this lane's first row among the q_len rows that its
// sequence has from row q_start on. by_scale: the scale of FP8 values, or 1.
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
