// Rung 4: several results per thread: P places below each other, of F filters.
// A word of the image that a thread reads is used F times, a weight P times.
//
//   Tile            what a block has of an image
//   direct_several  the kernel
//
// Arrays as in naive.cu.
//
// requires: sm_75
// @instance direct_several<8,8,8,4>
// @instance direct_several<7,8,8,4>
// @instance direct_several<8,1,8,1>
#include "images/direct/weights.cuh"
#include "images/shape.cuh"

// high, wide: rows and columns of the image that the windows of a tile cover;
// pitch: words from one row of them to the next in shared memory; down, across:
// tiles in the results of an image; channels: of a step.
struct Tile {
  int high, wide, pitch, down, across, channels;
};

// A block has WARPS warps, each with F filters, all with the same places: WIDE
// across and 32 / WIDE * P down. F divides 32.
//
// Grid: one block for each tile and each WARPS * F filters of a group. Dynamic
// shared memory: channels * (high * pitch + window * weights_pitch(WARPS * F))
// words, the first product rounded up to a multiple of 4.
// --8<-- [start:kernel]
template <int P, int F, int WIDE, int WARPS>
__global__ void __launch_bounds__(WARPS * 32, (P * F > 64 ? 8 : 16) / WARPS)
    direct_several(const Shape s, const Tile t,
                   const float* __restrict__ images,
                   const float* __restrict__ weights,
                   float* __restrict__ results) {
  constexpr int THREADS = WARPS * 32, FILTERS = WARPS * F;
  constexpr int PITCH = weights_pitch(FILTERS);
  extern __shared__ __align__(16) float tile[];
  const int area = t.high * t.pitch;
  float* const held = tile + (t.channels * area + 3) / 4 * 4;

  int rest = blockIdx.x;
  const int parts = (s.filters + FILTERS - 1) / FILTERS;
  const int filter = rest % parts * FILTERS;
  rest /= parts;
  const int column = rest % t.across * WIDE;
  rest /= t.across;
  const int row = rest % t.down * (32 / WIDE * P);
  const long long which = rest / t.down;  // group of an image
  const int group = (int)(which % s.groups);

  const int depth = s.channels * window(s);
  const int top = row * s.stride_y - s.pad_y,
            left = column * s.stride_x - s.pad_x;
  const float* const from =
      images + which * s.channels * ((long long)s.height * s.width);
  const float* const of_group =
      weights + ((long long)group * s.filters + filter) * depth;

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int tx = lane % WIDE, ty = lane / WIDE * P;
  float sum[P][F] = {};
  for (int start = 0; start < s.channels; start += t.channels) {
    const int channels = min(t.channels, s.channels - start);
    // --8<-- [start:copy]
    // A thread finds its place once for all channels of the step.
#pragma unroll 1
    for (int i = threadIdx.x; i < t.high * t.wide; i += THREADS) {
      const int down = i / t.wide, right = i % t.wide;
      const int y = top + down, x = left + right;
      const bool inside = y >= 0 && y < s.height && x >= 0 && x < s.width;
      const int offset = inside ? (start * s.height + y) * s.width + x : 0;
      const float* at = from + offset;
      float* to = tile + down * t.pitch + right;
      for (int c = 0; c < channels; ++c, at += s.height * s.width, to += area)
        *to = inside ? *at : 0.0f;
    }
    const int words = channels * window(s);
    copy_weights<WARPS, F>(held, of_group + start * window(s), depth, words,
                           words, s.filters - filter);
    // --8<-- [end:copy]
    __syncthreads();
    // --8<-- [start:compute]
    const float* weight = held + warp * F;
    for (int c = 0; c < channels; ++c) {
      const float* const first =
          tile + c * area + ty * s.stride_y * t.pitch + tx * s.stride_x;
      for (int r = 0; r < s.rows; ++r) {
#pragma unroll 1
        for (int q = 0; q < s.columns; ++q, weight += PITCH) {
          float of[F];
#pragma unroll
          for (int j = 0; j < F; ++j) of[j] = weight[j];
#pragma unroll
          for (int i = 0; i < P; ++i) {
            const float word =
                first[(i * s.stride_y + r * s.dilation_y) * t.pitch +
                      q * s.dilation_x];
#pragma unroll
            for (int j = 0; j < F; ++j) sum[i][j] += word * of[j];
          }
        }
      }
    }
    // --8<-- [end:compute]
    __syncthreads();  // the next step overwrites both
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
