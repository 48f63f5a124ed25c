// Convolution in fp32, NCHW, with windows of three columns whose images keep
// their width: the three taps of a row of the window share one copy of B, and
// read it one word further to the left or to the right.
//
//   Lines        a tile of the image on its way into shared memory
//   columns_of   the words of a thread for one tap
//   convolution  the kernel
//
// requires: sm_80
#include "images/implicit_gemm/store.cuh"
#include "images/shape.cuh"
#include "published/final.cuh"

// --8<-- [start:lines]
// The factor B for a row of the window: BK channels of EXTENT results' places,
// four more on each side, and four zeros. Images have a width of a multiple of
// four, so four places that begin at a multiple of four lie in one row, and a
// copy moves 16 bytes. Words of the tile's column i stand at 4 + i.
template <int EXTENT, int BK, int THREADS>
struct Lines {
  static constexpr int PITCH = EXTENT + 12, TILE = BK * PITCH,
                       ZERO = EXTENT + 8;
  static constexpr int LANES = EXTENT / 4, STEP = THREADS / LANES;
  static_assert(THREADS % LANES == 0 && BK % STEP == 0 && THREADS >= 2 * BK,
                "tile");

  struct Four {  // four places of this thread
    const float *first, *from;
    unsigned to;
    int y, line, bytes;

    __device__ __forceinline__ Four(const float* images, const Shape& s,
                                    long long pixel, int in_group,
                                    const float* to_place)
        : line(in_group) {
      const int plane = s.out_height * s.out_width;
      const long long image = pixel < 0 ? s.images : pixel / plane;
      const int place = pixel < 0 ? 0 : (int)(pixel % plane);
      y = place / s.out_width * s.stride_y - s.pad_y;
      first = images +
              (image < s.images ? image : 0) * s.groups * s.channels *
                  (long long)(s.height * s.width) +
              (long long)line * (s.height * s.width) + (long long)y * s.width +
              place % s.out_width;
      if (image >= s.images) y = -(1 << 30);
      to = (unsigned)__cvta_generic_to_shared(to_place);
    }

    __device__ __forceinline__ void turn_to(const Shape& s, int row) {
      from = first + row * s.dilation_y * s.width;
      bytes = (unsigned)(y + row * s.dilation_y) < (unsigned)s.height ? 16 : 0;
    }
  };

  Four own, side;  // side: of the first 2 * BK threads, beside the tile
  int channel, row;

  __device__ __forceinline__ Lines(const float* images, const Shape& s,
                                   long long left, const float* tiles)
      : own(images, s, left + threadIdx.x % LANES * 4, threadIdx.x / LANES,
            tiles + threadIdx.x / LANES * PITCH + 4 + threadIdx.x % LANES * 4),
        side(images, s, threadIdx.x % 2 ? left + EXTENT : left - 4,
             threadIdx.x / 2 % BK,
             tiles + threadIdx.x / 2 % BK * PITCH +
                 (threadIdx.x % 2 ? EXTENT + 4 : 0)),
        channel(0),
        row(0) {
    own.turn_to(s, 0), side.turn_to(s, 0);
  }

  __device__ __forceinline__ void copy(const Shape& s, int slot,
                                       bool more = true) {
    if (!more) return;
    const int plane = s.height * s.width, rows = s.channels - channel;
#pragma unroll
    for (int l = 0; l < BK; l += STEP)
      copy_async<4>(own.to + (slot * TILE + l * PITCH) * 4,
                    own.from + (long long)plane * l,
                    own.line + l < rows ? own.bytes : 0, true);
    if (threadIdx.x < 2 * BK)
      copy_async<4>(side.to + slot * TILE * 4, side.from,
                    side.line < rows ? side.bytes : 0, true);
  }

  __device__ __forceinline__ void advance(const Shape& s) {
    channel += BK;
    own.from += (long long)BK * (s.height * s.width);
    side.from += (long long)BK * (s.height * s.width);
    if (channel < s.channels) return;
    channel = 0, ++row;
    own.turn_to(s, row), side.turn_to(s, row);
  }
};
// --8<-- [end:lines]

// The words of a thread's TN columns for one of three taps: each four of them
// has one more on each side.
// --8<-- [start:columns]
template <int TAP, int TN>
__device__ __forceinline__ void columns_of(float (&to)[TN],
                                           const float (&from)[TN / 4][6]) {
#pragma unroll
  for (int j = 0; j < TN; ++j) to[j] = from[j / 4][TAP + j % 4];
}
// --8<-- [end:columns]

// The convolution (a cross-correlation) of `images` with the weights, as
// `turned_weights` leaves them, `pitch` words a line, with `deep` channels of a
// tap, a multiple of BK. Windows have three columns, a pad of 1, and no stride
// and no dilation to the right; the width is a multiple of four. results is
// [images][groups * filters][out_height][width].
//
// Grid: x the tiles, those of the same pixels side by side; y the groups.
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int TM, int TN, int STAGES, int BLOCKS>
__global__ void __launch_bounds__(BM* BN / (TM * TN), BLOCKS)
    convolution(const Shape s, const float* __restrict__ images,
                const float* __restrict__ turned, float* __restrict__ results,
                int pitch, int deep) {
  constexpr int THREADS = BM * BN / (TM * TN),
                LANE_ROWS = BM % (8 * TM) == 0 ? 8 : 4,
                LANE_COLUMNS = 32 / LANE_ROWS,
                WARP_COLUMNS = BN / (LANE_COLUMNS * TN), FOURS = TN / 4;
  using OfA = Operand<BM, BK, THREADS, 4, false>;
  using OfB = Lines<BN, BK, THREADS>;
  extern __shared__ float4 shared[];
  float* const tiles_a = reinterpret_cast<float*>(shared);
  float* const tiles_b = tiles_a + STAGES * (3 * OfA::TILE);

  const int tile_rows = (s.filters + BM - 1) / BM;
  const int top_tile = blockIdx.x % tile_rows * BM;
  const long long left_tile = (long long)(blockIdx.x / tile_rows) * BN;
  const int group = blockIdx.y;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / WARP_COLUMNS * (LANE_ROWS * TM);
  const int warp_column = warp % WARP_COLUMNS * (LANE_COLUMNS * TN);
  for (int i = threadIdx.x; i < STAGES * BK * 4; i += THREADS)
    tiles_b[i / 4 * OfB::PITCH + OfB::ZERO + i % 4] = 0.0f;

  const int of_row = (s.channels + BK - 1) / BK, steps = s.rows * of_row;
  OfA a_copy(turned + (long long)group * s.rows * 3 * deep * pitch, pitch,
             top_tile, pitch, 0, tiles_a);
  OfB b_copy(
      images + (long long)group * s.channels * ((long long)s.height * s.width),
      s, left_tile, tiles_b);
  // The three taps of a row of the window, one after the other.
  const auto copy_a = [&](int slot, bool more) {
#pragma unroll
    for (int tap = 0; tap < 3; ++tap) {
      a_copy.template copy<true>(slot * 3 + tap, BK, more);
      a_copy.from += (long long)deep * pitch;
    }
    a_copy.from -= 3ll * deep * pitch;
  };
  int block = 0;  // of channels
  const auto advance_a = [&] {
    a_copy.advance(BK);
    if (++block < of_row) return;
    block = 0, a_copy.from += 2ll * deep * pitch;
  };
#pragma unroll
  for (int i = 0; i < STAGES - 1; ++i) {
    if (i < steps) {
      copy_a(i, true);
      b_copy.copy(s, i);
      advance_a(), b_copy.advance(s);
    }
    commit();
  }
  wait_for_all_but<STAGES - 2>();
  __syncthreads();

  // Where a thread finds the word to the left, and to the right, of each four:
  // a zero at the image's edge.
  int beside[FOURS][2];
#pragma unroll
  for (int g = 0; g < FOURS; ++g) {
    const int at =
        warp_column + lane_column<LANE_ROWS>() * 4 + g * (LANE_COLUMNS * 4);
    const int x = (int)((left_tile + at) % s.width);
    beside[g][0] = x > 0 ? at + 3 : OfB::ZERO;
    beside[g][1] = x + 4 < s.width ? at + 8 : OfB::ZERO;
  }
  const float* a_from = tiles_a + warp_row + lane_row<LANE_ROWS>() * 4;
  const float* b_tile = tiles_b;
  const int b_first = 4 + warp_column + lane_column<LANE_ROWS>() * 4;
  float a[2][TM], b[2][FOURS][6], sum[TN][TM] = {};
  const auto read_b = [&](float (&to)[FOURS][6], int k) {
#pragma unroll
    for (int g = 0; g < FOURS; ++g) {
      const float* const line = b_tile + k * OfB::PITCH;
      const float4 four = *reinterpret_cast<const float4*>(
          line + b_first + g * (LANE_COLUMNS * 4));
      to[g][0] = line[beside[g][0]], to[g][5] = line[beside[g][1]];
      to[g][1] = four.x, to[g][2] = four.y, to[g][3] = four.z,
      to[g][4] = four.w;
    }
  };
  read<TM, LANE_ROWS * 4>(a[0], a_from);
  read_b(b[0], 0);
  int slot = 0, free_slot = STAGES - 1;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const bool more = step + STAGES - 1 < steps;
#pragma unroll
    for (int unit = 0; unit < 3 * BK; ++unit) {
      const int k = unit / 3, tap = unit % 3, next = (unit + 1) % (3 * BK);
      if (unit == 4) copy_a(free_slot, more);
      if (unit == 3 * BK / 2) {
        b_copy.copy(s, free_slot, more);
        commit();
        free_slot = slot;
      }
      if (unit == 3 * BK - 4) advance_a(), b_copy.advance(s);
      if (unit == 3 * BK - 1) {
        wait_for_all_but<STAGES - 2>();
        __syncthreads();
        slot = slot + 1 < STAGES ? slot + 1 : 0;
        a_from = tiles_a + slot * (3 * OfA::TILE) + warp_row +
                 lane_row<LANE_ROWS>() * 4;
        b_tile = tiles_b + slot * OfB::TILE;
      }
      read<TM, LANE_ROWS * 4>(a[(unit + 1) % 2], a_from + next % 3 * OfA::TILE +
                                                     next / 3 * OfA::PITCH);
      if (tap == 2) read_b(b[(k + 1) % 2], next / 3);
      float columns[TN];
      if (tap == 0) columns_of<0>(columns, b[k % 2]);
      if (tap == 1) columns_of<1>(columns, b[k % 2]);
      if (tap == 2) columns_of<2>(columns, b[k % 2]);
      multiply(sum, a[unit % 2], columns);
    }
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
// @instance convolution<64,128,16,8,8,2,3>
// @instance convolution<64,128,16,8,8,3,3>
