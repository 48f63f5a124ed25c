// Convolution in bf16, NHWC, of any number of channels: a tile of windows is
// gathered word by word, by a table as in offsets.cu, for the tensor cores.
//
//   packed_weights  weights in rows of whole steps, or with several groups in
//                   one
//   gather          the convolution
//
// requires: sm_80
#include <cuda_bf16.h>

#include "images/shape.cuh"
#include "ptx/mma.cuh"
#include "ptx/special.cuh"

// packed[filter][tap][channel] = weights[filter][tap][channel of the group]: a
// filter's taps lie `wide` words apart, the filters of a group `rows` and the
// groups `block` filters' lines of `line` words. With `together` groups in one,
// a group's channels begin behind those of the group before: what is not
// written stays as it is, which is 0.
// --8<-- [start:pack]
extern "C" __global__ void packed_weights(const __nv_bfloat16* weights,
                                          __nv_bfloat16* packed, Shape s,
                                          int wide, int line, int block,
                                          int together) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const int window = s.rows * s.columns;
  if (i >= (long long)s.groups * s.filters * window * s.channels) return;
  const int channel = (int)(i % s.channels),
            tap = (int)(i / s.channels % window);
  const long long filter = i / s.channels / window, group = filter / s.filters;
  packed[(group * block + filter % s.filters) * line + (long long)tap * wide +
         group % together * s.channels + channel] = weights[i];
}
// --8<-- [end:pack]

constexpr int BM = 128, BK = 32, THREADS = 256;

// Where a piece of 16 bytes, of four in a line, lies: the eight lines that are
// read at a time have it at eight places of the 128 bytes of the banks.
__device__ __forceinline__ int piece(int line, int i) {
  return line * BK + (i ^ line / 2 % 4) * 8;
}

// The convolution of images, [image][y][x][channel], with packed weights, which
// have a line of `line` words, a multiple of BK, for each filter, and BN lines
// for each BN filters of a group, begun ones included. table: as in offsets.cu,
// for images that lie so, and as long as a line. Grid: x the tiles of BM pixels
// and BN filters, those of the same pixels side by side; y the groups.
// --8<-- [start:kernel]
template <int BN, bool BITS>
__global__ void __launch_bounds__(THREADS, 2)
    gather(const Shape s, const __nv_bfloat16* __restrict__ images,
           const __nv_bfloat16* __restrict__ packed,
           const int2* __restrict__ table, __nv_bfloat16* __restrict__ results,
           int line) {
  constexpr int WARPS_ACROSS = BN / 32, WARPS_DOWN = 8 / WARPS_ACROSS,
                TALL = BM / WARPS_DOWN / 16;
  constexpr int A = BM * BK, B = BN * BK, PITCH = BN + 8;
  static_assert(2 * (A + B) >= BM * PITCH, "results fit where factors were");
  __shared__ __align__(128) __nv_bfloat16 memory[2 * (A + B)];
  __nv_bfloat16 *const tile_a = memory, *const tile_b = memory + 2 * A;

  const int t = threadIdx.x, tile_columns = (s.filters + BN - 1) / BN;
  const int group = blockIdx.y, left = blockIdx.x % tile_columns * BN;
  const long long top = (long long)(blockIdx.x / tile_columns) * BM;
  const long long all = (long long)s.groups * s.channels;

  // A thread gathers 16 of the 32 words of a step, for one pixel.
  const int at = t % BM, half = t / BM;
  const int plane = s.out_height * s.out_width;
  const long long pixel = top + at, image = pixel / plane;
  const int place = (int)(pixel - image * plane);
  int y = place / s.out_width * s.stride_y - s.pad_y;
  const int x = place % s.out_width * s.stride_x - s.pad_x;
  const __nv_bfloat16* const from =
      images +
      (((image < s.images ? image : 0) * s.height + y) * s.width + x) * all +
      (long long)group * s.channels;
  if (image >= s.images) y = -(1 << 30);
  const auto meets = [&](int down, int right) {
    return (unsigned)(y + down) < (unsigned)s.height &&
           (unsigned)(x + right) < (unsigned)s.width;
  };
  unsigned mask = 0;
  if (BITS)
    for (int r = 0; r < s.rows; ++r)
      for (int c = 0; c < s.columns; ++c)
        mask |= (unsigned)meets(r * s.dilation_y, c * s.dilation_x)
                << (r * s.columns + c);
  table += half * 16;
  const __nv_bfloat16* b_from =
      packed + ((long long)group * tile_columns * BN + left + t / 4) * line +
      t % 4 * 8;

  unsigned words[8];
  uint4 weight;
  const auto load = [&] {
    const auto word = [&](int offset, int which) -> unsigned {
      const bool inside =
          BITS ? (mask & which) != 0
               : which >= 0 && meets(which >> 16, which & 0xffff);
      return inside ? (unsigned)__ldg(reinterpret_cast<const unsigned short*>(
                          from + offset))
                    : 0u;
    };
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int4 two = __ldg(reinterpret_cast<const int4*>(table + 2 * i));
      words[i] = word(two.x, two.y) | word(two.z, two.w) << 16;
    }
    if (t < BN * 4) weight = __ldg(reinterpret_cast<const uint4*>(b_from));
    table += BK, b_from += BK;
  };
  const auto store = [&](int slot) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      *reinterpret_cast<uint4*>(tile_a + slot * A + piece(at, half * 2 + i)) =
          make_uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2],
                     words[4 * i + 3]);
    if (t < BN * 4)
      *reinterpret_cast<uint4*>(tile_b + slot * B + piece(t / 4, t % 4)) =
          weight;
  };

  const int warp = t / 32, lane = t % 32;
  const int down = warp / WARPS_ACROSS * TALL * 16,
            right = warp % WARPS_ACROSS * 32;
  float sum[TALL][4][4] = {};
  load();
  store(0);
  __syncthreads();
  for (int step = 0, steps = line / BK; step < steps; ++step) {
    const bool more = step + 1 < steps;
    if (more) load();
    const __nv_bfloat16 *const a_at = tile_a + step % 2 * A, *const b_at =
                                                                 tile_b +
                                                                 step % 2 * B;
#pragma unroll
    for (int k = 0; k < BK / 16; ++k) {
      unsigned a[TALL][4], b[2][4];
#pragma unroll
      for (int i = 0; i < TALL; ++i)
        ldmatrix(a[i], shared_address(a_at + piece(down + i * 16 + lane % 16,
                                                   2 * k + lane / 16)));
#pragma unroll
      for (int j = 0; j < 2; ++j)
        ldmatrix(b[j], shared_address(b_at + piece(right + j * 16 +
                                                       lane / 16 * 8 + lane % 8,
                                                   2 * k + lane / 8 % 2)));
#pragma unroll
      for (int i = 0; i < TALL; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          mma(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
    if (more) store((step + 1) % 2);
    __syncthreads();
  }

  // Through shared memory, so that neighboring lanes store neighboring filters.
#pragma unroll
  for (int i = 0; i < TALL; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        *reinterpret_cast<unsigned*>(
            memory + (down + i * 16 + h * 8 + lane / 4) * PITCH + right +
            j * 8 + lane % 4 * 2) =
            pack(sum[i][j][2 * h], sum[i][j][2 * h + 1]);
  __syncthreads();
  const long long pixels = (long long)s.images * plane;
  const bool whole = s.filters % 8 == 0;
  for (int i = t; i < BM * BN / 8; i += THREADS) {
    const int row = i / (BN / 8), column = i % (BN / 8) * 8;
    if (top + row >= pixels) continue;
    __nv_bfloat16* const to =
        results + ((top + row) * s.groups + group) * s.filters + left + column;
    const __nv_bfloat16* const line_of = memory + row * PITCH + column;
    if (whole) {
      if (left + column < s.filters)
        *reinterpret_cast<uint4*>(to) =
            *reinterpret_cast<const uint4*>(line_of);
    } else {
      for (int e = 0; e < 8 && left + column + e < s.filters; ++e)
        to[e] = line_of[e];
    }
  }
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance gather<64,true>
// @instance gather<64,false>
// @instance gather<32,true>
