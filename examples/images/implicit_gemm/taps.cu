// Convolution in fp32, NCHW, with the depth in another order: for each place of
// the window, which is a tap, all channels. A step has one tap; so one test
// serves all of its copies, and nothing needs a table.
//
//   turned_weights  the weights in that order, filters side by side
//   Taps            a tile of the image on its way into shared memory
//   convolution     the kernel
//
// requires: sm_80
#include "images/implicit_gemm/store.cuh"
#include "images/shape.cuh"
#include "published/final.cuh"

constexpr int EDGE = 32;

// turned[group][tap][channel][filter] from weights[group][filter][channel]
// [tap]. A tap has `deep` channels, filters lie `pitch` apart: what is beyond
// the weights stays as it is, which is 0. Grid: x tiles of EDGE of a filter's
// weights, y those of EDGE filters, z the groups; EDGE x 8 threads.
// --8<-- [start:turn]
extern "C" __global__ void turned_weights(const float* __restrict__ weights,
                                          float* __restrict__ turned,
                                          int filters, int channels, int window,
                                          int deep, int pitch) {
  __shared__ float tile[EDGE][EDGE + 1];
  const int depth = channels * window, left = blockIdx.x * EDGE,
            top = blockIdx.y * EDGE;
  const long long group = blockIdx.z;
  weights += group * filters * depth;
  turned += group * window * deep * pitch;
  for (int i = threadIdx.y; i < EDGE; i += 8)
    if (top + i < filters && left + threadIdx.x < depth)
      tile[i][threadIdx.x] =
          weights[(long long)(top + i) * depth + left + threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.y; i < EDGE; i += 8) {
    const int channel = (left + i) / window, tap = (left + i) % window;
    if (left + i < depth && top + threadIdx.x < filters)
      turned[((long long)tap * deep + channel) * pitch + top + threadIdx.x] =
          tile[threadIdx.x][i];
  }
}
// --8<-- [end:turn]

// --8<-- [start:taps]
// The factor B: a column for each result's place in all images. A thread copies
// WORDS neighboring columns, every STEP-th row, and the rows of a tile are BK
// channels of one tap. WORDS is 4 where four results' words are neighbors in
// memory: windows of one pixel, a stride of 1, planes of multiples of 4 words.
// EVEN: the channels are a multiple of BK.
template <int EXTENT, int BK, int THREADS, int WORDS, bool EVEN>
struct Taps {
  static constexpr int PITCH = EXTENT, TILE = BK * PITCH;
  static constexpr int LANES = EXTENT / WORDS, STEP = THREADS / LANES;
  static_assert(THREADS % LANES == 0 && BK % STEP == 0, "tile");

  const float *first, *from;  // the window's first word, and that of the tile
  unsigned to;
  int y, x;  // where the window begins
  int line, channel, row, column, bytes;

  __device__ __forceinline__ Taps(const float* images, const Shape& s,
                                  long long left, int step, const float* tiles)
      : line(threadIdx.x / LANES) {
    const int at = threadIdx.x % LANES * WORDS;
    const long long pixel = left + at;
    const int plane = s.out_height * s.out_width;
    const long long image = pixel / plane;
    const int place = (int)(pixel - image * plane);
    y = place / s.out_width * s.stride_y - s.pad_y;
    x = place % s.out_width * s.stride_x - s.pad_x;
    first = images +
            (image < s.images ? image : 0) * s.groups * s.channels *
                (long long)(s.height * s.width) +
            (long long)y * s.width + x;
    if (image >= s.images) y = -(1 << 30);
    to = (unsigned)__cvta_generic_to_shared(tiles + line * PITCH + at);
    const int steps = (s.channels + BK - 1) / BK, tap = step / steps;
    channel = step % steps * BK;
    row = tap / s.columns, column = tap % s.columns;
    turn_to(s);
    from += (long long)channel * (s.height * s.width);
  }

  // The tap at (row, column) of the window: does it meet the image?
  __device__ __forceinline__ void turn_to(const Shape& s) {
    const int down = row * s.dilation_y, right = column * s.dilation_x;
    from =
        first + (long long)line * (s.height * s.width) + down * s.width + right;
    bytes = (unsigned)(y + down) < (unsigned)s.height &&
                    (unsigned)(x + right) < (unsigned)s.width
                ? WORDS * 4
                : 0;
  }

  // Start to copy the next tile into a slot. Zeros stand where the window
  // leaves the image, and for channels that are none. A tile of BK channels
  // needs no test for them.
  __device__ __forceinline__ void copy(const Shape& s, int slot,
                                       bool more = true) {
    if (!more) return;
    if (EVEN || channel + BK <= s.channels)
      copy_rows<BK>(s, slot, BK);
    else
      copy_rows<0>(s, slot, s.channels - channel - line);
  }

  template <int ALWAYS>
  __device__ __forceinline__ void copy_rows(const Shape& s, int slot,
                                            int rows) {
    const unsigned base = to + slot * (TILE * 4);
    const int plane = s.height * s.width;
#pragma unroll
    for (int l = 0; l < BK; l += STEP)
      copy_async<WORDS>(base + l * PITCH * 4, from + (long long)plane * l,
                        l < ALWAYS || l < rows ? bytes : 0, true);
  }

  // --8<-- [start:advance]
  __device__ __forceinline__ void advance(const Shape& s) {
    channel += BK;
    from += (long long)BK * (s.height * s.width);
    if (channel < s.channels) return;
    channel = 0;
    if (++column == s.columns) column = 0, ++row;
    turn_to(s);
  }
  // --8<-- [end:advance]
};
// --8<-- [end:taps]

// The convolution (a cross-correlation) of `images` with the weights, as
// `turned_weights` leaves them; `results` is [images][groups * filters]
// [out_height][out_width].
//
// Grid: x for each part of the depth the tiles, those of the same pixels side
// by side; y the groups. A part has per_part steps of BK channels of a tap, the
// last one what is left. partials: BM * BN words for each block, tickets: a 0
// for each tile of each group; neither is used for one part. At most 16 parts.
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int TM, int TN, int STAGES, int BLOCKS,
          int WORDS, bool EVEN>
__global__ void __launch_bounds__(BM* BN / (TM * TN), BLOCKS)
    convolution(const Shape s, const float* __restrict__ images,
                const float* __restrict__ turned, float* __restrict__ results,
                int pitch, int parts, int per_part,
                float* __restrict__ partials, unsigned* __restrict__ tickets) {
  constexpr int THREADS = BM * BN / (TM * TN),
                LANE_ROWS = BM % (8 * TM) == 0 ? 8 : 4,
                LANE_COLUMNS = 32 / LANE_ROWS,
                WARP_COLUMNS = BN / (LANE_COLUMNS * TN);
  using OfA = Operand<BM, BK, THREADS, 4, false>;
  using OfB = Taps<BN, BK, THREADS, WORDS, EVEN>;
  extern __shared__ float4 shared[];
  float* const tiles_a = reinterpret_cast<float*>(shared);
  float* const tiles_b = tiles_a + STAGES * OfA::TILE;

  const int tile_rows = (s.filters + BM - 1) / BM;
  const int tiles = gridDim.x / parts, tile = blockIdx.x % tiles,
            part = blockIdx.x / tiles;
  const int top_tile = tile % tile_rows * BM;
  const long long left_tile = (long long)(tile / tile_rows) * BN;
  const int group = blockIdx.y;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / WARP_COLUMNS * (LANE_ROWS * TM);
  const int warp_column = warp % WARP_COLUMNS * (LANE_COLUMNS * TN);

  const int all = s.rows * s.columns * ((s.channels + BK - 1) / BK);
  const int start = part * per_part, steps = min(per_part, all - start);
  OfA a_copy(turned + (long long)group * all * BK * pitch, pitch, top_tile,
             pitch, start * BK, tiles_a);
  OfB b_copy(
      images + (long long)group * s.channels * ((long long)s.height * s.width),
      s, left_tile, start, tiles_b);
#pragma unroll
  for (int i = 0; i < STAGES - 1; ++i) {
    if (i < steps) {
      a_copy.template copy<true>(i, BK);
      b_copy.copy(s, i);
      a_copy.advance(BK);
      b_copy.advance(s);
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
        b_copy.copy(s, free_slot, more);
        commit();
        free_slot = slot;
      }
      if (kk == BK - 2) {
        a_copy.advance(BK);
        b_copy.advance(s);
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

  if (parts > 1) {
    const long long which = (long long)group * tiles + tile;
    if (!add_parts<TM, TN, THREADS>(sum, part, parts,
                                    partials + which * parts * (BM * BN), 1,
                                    tickets + which))
      return;
  }
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
// @instance convolution<64,128,16,8,8,3,3,1,true>
// @instance convolution<64,128,16,8,8,3,3,1,false>
// @instance convolution<64,128,16,8,8,3,3,4,true>
// @instance convolution<64,64,16,8,8,3,6,1,false>
// @instance convolution<64,64,16,8,4,4,4,1,true>
// @instance convolution<32,64,16,4,8,4,8,1,true>
// @instance convolution<32,64,16,4,8,4,8,4,true>
// @instance convolution<16,64,16,4,4,3,8,1,true>
