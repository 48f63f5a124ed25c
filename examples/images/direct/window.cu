// Rung 5: the window and the stride are known to the compiler. A column of the
// image stays in registers for all rows of the window, loops are unrolled, and
// places in shared memory are constants.
//
//   pitch_of       words from a row to the next, without bank conflicts
//   direct_window  the kernel
//
// Arrays as in naive.cu.
//
// requires: sm_75
// @instance direct_window<7,8,8,4,8,3,3,1,false>
// @instance direct_window<7,8,8,4,8,3,3,2,false>
// @instance direct_window<7,8,8,4,8,1,1,1,false>
// @instance direct_window<7,8,8,4,4,5,5,1,false>
// @instance direct_window<7,8,8,4,3,7,7,2,false>
// @instance direct_window<8,1,8,1,1,3,3,1,false>
// @instance direct_window<7,16,8,2,8,3,3,1,false>
// @instance direct_window<7,8,8,4,4,3,3,1,true>
#include "images/direct/weights.cuh"
#include "images/shape.cuh"

// How many lanes of a warp meet in the bank that most of them meet in, if rows
// of the tile lie `pitch` words apart: lane l reads at l % wide * stride in row
// l / wide * down.
__host__ __device__ constexpr int meeting(int pitch, int wide, int down,
                                          int stride) {
  int most = 0;
  for (int bank = 0; bank < 32; ++bank) {
    int met = 0;
    for (int lane = 0; lane < 32; ++lane)
      met += (lane / wide * down * pitch + lane % wide * stride) % 32 == bank;
    most = met > most ? met : most;
  }
  return most;
}

// The smallest of 32 pitches from `least` on with the fewest such lanes.
__host__ __device__ constexpr int pitch_of(int least, int wide, int down,
                                           int stride) {
  int best = least;
  for (int pitch = least; pitch < least + 32; ++pitch)
    if (meeting(pitch, wide, down, stride) < meeting(best, wide, down, stride))
      best = pitch;
  return best;
}

// P, F, WIDE, WARPS as in several.cu; CHANNELS of a step; a window of ROWS x
// COLUMNS, STRIDE in both directions, no dilation. AHEAD: the next step is on
// its way while this one is computed (from sm_80 on). down, across: tiles in
// the results of an image. Grid: one block for each tile and each WARPS * F
// filters of a group.
// --8<-- [start:kernel]
template <int P, int F, int WIDE, int WARPS, int CHANNELS, int ROWS,
          int COLUMNS, int STRIDE, bool AHEAD>
__global__ void __launch_bounds__(WARPS * 32, (P * F > 64 ? 8 : 16) / WARPS)
    direct_window(const Shape s, const int down, const int across,
                  const float* __restrict__ images,
                  const float* __restrict__ weights,
                  float* __restrict__ results) {
  constexpr int THREADS = WARPS * 32, FILTERS = WARPS * F;
  constexpr int WINDOW = ROWS * COLUMNS, LINES = 32 / WIDE * P;
  constexpr int TILE_HIGH = (LINES - 1) * STRIDE + ROWS,
                TILE_WIDE = (WIDE - 1) * STRIDE + COLUMNS;
  constexpr int PITCH = pitch_of(TILE_WIDE, WIDE, P * STRIDE, STRIDE);
  constexpr int WORDS = (P - 1) * STRIDE + ROWS;  // of a column, of a thread
  __shared__ float tiles[AHEAD + 1][CHANNELS][TILE_HIGH][PITCH];
  __shared__ __align__(16) float held[AHEAD + 1][CHANNELS][ROWS][COLUMNS]
                                     [weights_pitch(FILTERS)];

  int rest = blockIdx.x;
  const int parts = (s.filters + FILTERS - 1) / FILTERS;
  const int filter = rest % parts * FILTERS;
  rest /= parts;
  const int column = rest % across * WIDE;
  rest /= across;
  const int row = rest % down * LINES;
  const long long which = rest / down;  // group of an image
  const int group = (int)(which % s.groups);

  const int depth = s.channels * WINDOW;
  const int top = row * STRIDE - s.pad_y, left = column * STRIDE - s.pad_x;
  const float* const from =
      images + which * s.channels * ((long long)s.height * s.width);
  const float* const of_group =
      weights + ((long long)group * s.filters + filter) * depth;

  // --8<-- [start:copy]
  // Channels that are missing in the last step count as zeros.
  const auto copy = [&](int start, int slot) {
#pragma unroll 1
    for (int i = threadIdx.x; i < TILE_HIGH * TILE_WIDE; i += THREADS) {
      const int y = top + i / TILE_WIDE, x = left + i % TILE_WIDE;
      const bool inside = y >= 0 && y < s.height && x >= 0 && x < s.width;
      const int offset = inside ? (start * s.height + y) * s.width + x : 0;
      const float* at = from + offset;
#pragma unroll
      for (int c = 0; c < CHANNELS; ++c, at += s.height * s.width)
        put<AHEAD>(&tiles[slot][c][i / TILE_WIDE][i % TILE_WIDE], at,
                   inside && start + c < s.channels);
    }
    copy_weights<WARPS, F, AHEAD>(
        &held[slot][0][0][0][0], of_group + start * WINDOW, depth,
        CHANNELS * WINDOW, depth - start * WINDOW, s.filters - filter);
    if (AHEAD) __pipeline_commit();
  };
  // --8<-- [end:copy]

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int tx = lane % WIDE, ty = lane / WIDE * P;
  float sum[P][F] = {};
  copy(0, 0);
  for (int start = 0; start < s.channels; start += CHANNELS) {
    const bool more = start + CHANNELS < s.channels;
    const int slot = AHEAD ? start / CHANNELS % 2 : 0;
    if (AHEAD) __pipeline_wait_prior(0);
    __syncthreads();
    if (AHEAD && more) copy(start + CHANNELS, slot ^ 1);
    // --8<-- [start:compute]
#pragma unroll 1
    for (int c = 0; c < CHANNELS; ++c) {
#pragma unroll
      for (int q = 0; q < COLUMNS; ++q) {
        float word[WORDS];
#pragma unroll
        for (int i = 0; i < WORDS; ++i)
          word[i] = tiles[slot][c][ty * STRIDE + i][tx * STRIDE + q];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
          float of[F];
#pragma unroll
          for (int j = 0; j < F; ++j) of[j] = held[slot][c][r][q][warp * F + j];
#pragma unroll
          for (int i = 0; i < P; ++i)
#pragma unroll
            for (int j = 0; j < F; ++j)
              sum[i][j] += word[i * STRIDE + r] * of[j];
        }
      }
    }
    // --8<-- [end:compute]
    if (AHEAD || !more) continue;
    __syncthreads();  // the next step overwrites both
    copy(start + CHANNELS, 0);
  }

  const int first = filter + warp * F, y = row + ty, x = column + tx;
  if (x >= s.out_width) return;
  const long long step = plane(s);
  float* to =
      results + (which * s.filters + first) * step + (y * s.out_width + x);
#pragma unroll
  for (int j = 0; j < F; ++j, to += step) {
#pragma unroll
    for (int i = 0; i < P; ++i)
      if (first + j < s.filters && y + i < s.out_height)
        to[i * s.out_width] = sum[i][j];
  }
}
// --8<-- [end:kernel]
