// Convolution in fp32, NCHW, as a product whose second factor is never stored:
// the final kernel of the part on products, with another way to fetch B.
//
//   Pixels       a tile of the image on its way into shared memory
//   convolution  the kernel
//
// requires: sm_80
#include "images/implicit_gemm/store.cuh"
#include "images/shape.cuh"
#include "published/final.cuh"

// --8<-- [start:pixels]
// The factor B: a column for each result's place in all images, a row for each
// weight of a filter. A thread copies one column, every STEP-th row. What a row
// adds to the place of a pixel's first word is the same for all columns: a
// table has it. It also says which weight of the window the row belongs to:
// BITS: as a bit, and the thread knows by a mask which weights of its window
// meet the image; else as row << 16 | column, dilated.
template <int EXTENT, int BK, int THREADS, bool BITS>
struct Pixels {
  static constexpr int PITCH = EXTENT, TILE = BK * PITCH;
  static constexpr int STEP = THREADS / EXTENT;
  static_assert(THREADS % EXTENT == 0 && BK % (2 * STEP) == 0, "tile");

  const float* from;  // the first word of this thread's window
  const int2* table;  // this thread's first row of the next tile
  unsigned to, mask;
  int y, x, height, width;

  __device__ __forceinline__ Pixels(const float* images, const Shape& s,
                                    const int2* rows, long long first,
                                    const float* tiles)
      : height(s.height), width(s.width) {
    const int at = threadIdx.x % EXTENT, row = threadIdx.x / EXTENT;
    const long long pixel = first + at;
    const int plane = s.out_height * s.out_width;
    const long long image = pixel / plane;
    const int place = (int)(pixel - image * plane);
    y = place / s.out_width * s.stride_y - s.pad_y;
    x = place % s.out_width * s.stride_x - s.pad_x;
    const bool inside = image < s.images;
    from = images +
           (inside ? image : 0) * s.groups * s.channels *
               (long long)(s.height * s.width) +
           (long long)y * s.width + x;
    if (!inside) y = -(1 << 30);
    // --8<-- [start:mask]
    mask = 0;
    if (BITS)
      for (int r = 0; r < s.rows; ++r)
        for (int c = 0; c < s.columns; ++c)
          mask |= (unsigned)meets(r * s.dilation_y, c * s.dilation_x)
                  << (r * s.columns + c);
    // --8<-- [end:mask]
    table = rows + row;
    to = (unsigned)__cvta_generic_to_shared(tiles + row * PITCH + at);
  }

  __device__ __forceinline__ bool meets(int down, int right) const {
    return (unsigned)(y + down) < (unsigned)height &&
           (unsigned)(x + right) < (unsigned)width;
  }

  // --8<-- [start:copy]
  // Start to copy the next tile into a slot. Zeros stand where the window
  // leaves the image.
  __device__ __forceinline__ void copy(int slot, bool more = true) {
    if (!more) return;
    const unsigned base = to + slot * (TILE * 4);
#pragma unroll
    for (int l = 0; l < BK; l += STEP) {
      const int2 row = __ldg(table + l);
      const bool inside =
          BITS ? (mask & row.y) != 0
               : row.y >= 0 && meets(row.y >> 16, row.y & 0xffff);
      copy_async<1>(base + l * PITCH * 4, from + row.x, inside ? 4 : 0, true);
    }
  }

  // --8<-- [end:copy]
  __device__ __forceinline__ void advance() { table += BK; }
};
// --8<-- [end:pixels]

// The convolution (a cross-correlation) of `images` with `weights`, [groups *
// filters][channels][rows][columns]; `results` is [images][groups * filters]
// [out_height][out_width]. table: for each of the steps' BK rows of B the
// offset in an image, and its weight; rows without a weight have (0, 0), or (0,
// -1) without BITS. The first step has what BK leaves over. VEC stays 1 for A,
// whose lines run along the depth.
//
// Grid: x the tiles, those of the same pixels side by side; y the groups.
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int TM, int TN, int STAGES, int BLOCKS,
          bool BITS>
__global__ void __launch_bounds__(BM* BN / (TM * TN), BLOCKS)
    convolution(const Shape s, const float* __restrict__ images,
                const float* __restrict__ weights,
                const int2* __restrict__ table, float* __restrict__ results) {
  constexpr int THREADS = BM * BN / (TM * TN),
                LANE_ROWS = BM % (8 * TM) == 0 ? 8 : 4,
                LANE_COLUMNS = 32 / LANE_ROWS,
                WARP_COLUMNS = BN / (LANE_COLUMNS * TN);
  using OfA = Operand<BM, BK, THREADS, 1, true>;
  using OfB = Pixels<BN, BK, THREADS, BITS>;
  extern __shared__ float4 shared[];
  float* const tiles_a = reinterpret_cast<float*>(shared);
  float* const tiles_b = tiles_a + STAGES * OfA::TILE;

  const int depth = s.channels * s.rows * s.columns;
  const int tile_rows = (s.filters + BM - 1) / BM;
  const int top_tile = blockIdx.x % tile_rows * BM;
  const long long left_tile = (long long)(blockIdx.x / tile_rows) * BN;
  const int group = blockIdx.y;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / WARP_COLUMNS * (LANE_ROWS * TM);
  const int warp_column = warp % WARP_COLUMNS * (LANE_COLUMNS * TN);

  const int steps = (depth + BK - 1) / BK;
  OfA a_copy(weights + (long long)group * s.filters * depth, depth, top_tile,
             s.filters, 0, tiles_a);
  OfB b_copy(
      images + (long long)group * s.channels * ((long long)s.height * s.width),
      s, table, left_tile, tiles_b);

  a_copy.template copy<false>(0, depth - (steps - 1) * BK);
  b_copy.copy(0);
  a_copy.advance(depth - (steps - 1) * BK);
  b_copy.advance();
  commit();
#pragma unroll
  for (int i = 1; i < STAGES - 1; ++i) {
    if (i < steps) {
      a_copy.template copy<true>(i, BK);
      b_copy.copy(i);
      a_copy.advance(BK);
      b_copy.advance();
    }
    commit();
  }
  wait_for_all_but<STAGES - 2>();
  __syncthreads();

  const float* a_from = tiles_a + warp_row + lane_row<LANE_ROWS>() * 4;
  const float* b_from = tiles_b + warp_column + lane_column<LANE_ROWS>() * 4;
  float a[2][TM], b[2][TN], sum[TN][TM] = {};
  read<TM, LANE_ROWS * 4>(a[0], a_from);
  read<TN, LANE_COLUMNS * 4>(b[0], b_from);
  int slot = 0, free_slot = STAGES - 1;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const bool more = step + STAGES - 1 < steps;
#pragma unroll
    for (int kk = 0; kk < BK; ++kk) {
      if (kk == 2) a_copy.template copy<true>(free_slot, BK, more);
      if (kk == BK / 2) {
        b_copy.copy(free_slot, more);
        commit();
        free_slot = slot;
      }
      if (kk == BK - 2) {
        a_copy.advance(BK);
        b_copy.advance();
      }
      if (kk == BK - 1) {
        wait_for_all_but<STAGES - 2>();
        __syncthreads();
        slot = slot + 1 < STAGES ? slot + 1 : 0;
        a_from =
            tiles_a + slot * OfA::TILE + warp_row + lane_row<LANE_ROWS>() * 4;
        b_from = tiles_b + slot * OfB::TILE + warp_column +
                 lane_column<LANE_ROWS>() * 4;
      }
      const int next = (kk + 1) % BK;
      read<TM, LANE_ROWS * 4>(a[(kk + 1) % 2], a_from + next * OfA::PITCH);
      read<TN, LANE_COLUMNS * 4>(b[(kk + 1) % 2], b_from + next * OfB::PITCH);
      multiply(sum, a[kk % 2], b[kk % 2]);
    }
  }

  // A column of C is a place in an image.
  const int plane = s.out_height * s.out_width;
  const auto at = [&](int column) -> float* {
    const long long pixel = left_tile + warp_column + column,
                    image = pixel / plane;
    if (image >= s.images) return nullptr;
    return results +
           ((image * s.groups + group) * s.filters + top_tile + warp_row) *
               (long long)plane +
           (pixel - image * plane);
  };
  constexpr int WORDS_OF_WARP = LANE_COLUMNS * TN * (LANE_ROWS * 4 + 4);
  __syncthreads();
  store_tile<LANE_ROWS>(sum, tiles_a + warp * WORDS_OF_WARP,
                        s.filters - top_tile - warp_row, plane, at);
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance convolution<64,128,16,8,8,3,3,true>
// @instance convolution<64,128,16,8,8,3,3,false>
// @instance convolution<32,64,16,4,8,4,8,true>
// @instance convolution<16,64,16,4,4,3,8,true>
