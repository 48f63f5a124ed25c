// Convolution in bf16, NHWC, on wgmma: the TMA fetches the windows themselves.
//
//   copy_pixels   starts to copy a box of pixels, each moved by an offset
//   copy_box      a box of an array of three axes
//   Shared        what lies in shared memory
//   convolve      the kernel
//
// requires: sm_90a
#include "images/shape.cuh"
#include "ptx/special.cuh"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"

// --8<-- [start:copy]
// Start to copy a column of pixels, 64 channels of each: the one whose window
// begins at (image, y, x), and those after it, in the order of results; the map
// knows how many, the stride, and where a row of results ends. All are moved by
// (down, right), from 0 to 255, the place in the window. Words outside the
// image arrive as zeros.
//
// PTX ISA: cp.async.bulk.tensor, 'im2col mode'
__device__ __forceinline__ void copy_pixels(void* to, const CUtensorMap& map,
                                            int image, int y, int x,
                                            int channel, int down, int right,
                                            Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col"
      ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6],"
      " {%7, %8};" ::"r"(shared_address(to)),
      "l"(&map), "r"(channel), "r"(x), "r"(y), "r"(image),
      "r"(shared_address(barrier)), "h"((unsigned short)right),
      "h"((unsigned short)down)
      : "memory");
}
// --8<-- [end:copy]

// The same for a box of an array of three axes.
__device__ __forceinline__ void copy_box(void* to, const CUtensorMap& map,
                                         int first, int second, int third,
                                         Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile"
      ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(
          shared_address(to)),
      "l"(&map), "r"(third), "r"(second), "r"(first),
      "r"(shared_address(barrier))
      : "memory");
}

constexpr int BK = 64;  // channels in a stage: a line of a box

template <int CONSUMERS, int BN, int STAGES>
struct Shared {
  unsigned char a[STAGES][CONSUMERS * 64 * 128], b[STAGES][BN * 128];
  Barrier full[STAGES], empty[STAGES];
};

// Registers of a thread that copies, and of one that computes.
template <int CONSUMERS>
constexpr int TO_COPY = CONSUMERS == 3 ? 32 : 40;
template <int CONSUMERS>
constexpr int TO_COMPUTE = CONSUMERS == 3   ? 160
                           : CONSUMERS == 2 ? 232
                                            : 240;

// The convolution of images, [image][y][x][channel], with one group; weights as
// [filter][row * columns][channel]; results like images. A result's pixel is a
// row of the product, a filter a column, a place in the window and a channel a
// step of depth. channels and filters are multiples of 8. A tile has 64 pixels
// for each of CONSUMERS warpgroups, and BN filters.
//
// images is an im2col map with boxes of CONSUMERS * 64 pixels and 64 channels,
// weights a map with boxes of BN x 1 x 64. Grid: as many blocks as there are
// SMs, or tiles if these are fewer. Dynamic shared memory: Shared.
// --8<-- [start:kernel]
template <int CONSUMERS, int BN, int STAGES>
__global__ void __launch_bounds__(128 + CONSUMERS * 128, 1)
    convolve(const __grid_constant__ CUtensorMap images,
             const __grid_constant__ CUtensorMap weights,
             __nv_bfloat16* __restrict__ results, const Shape s) {
  constexpr int BM = CONSUMERS * 64;
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& sh = *reinterpret_cast<Shared<CONSUMERS, BN, STAGES>*>(memory);
  const int plane = s.out_height * s.out_width;
  const long long pixels = (long long)s.images * plane;
  const int tile_columns = (s.filters + BN - 1) / BN;
  const long long tiles = (pixels + BM - 1) / BM * tile_columns;
  const int window = s.rows * s.columns;
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i)
      init(&sh.full[i], 1), init(&sh.empty[i], CONSUMERS);
    fence_init();
  }
  __syncthreads();

  Ring<STAGES> ring;
  if (threadIdx.x < 128) {
    give_registers_back<TO_COPY<CONSUMERS>>();
    if (threadIdx.x != 0) return;
    prefetch(images), prefetch(weights);
    // --8<-- [start:producer]
    for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      const long long top = tile / tile_columns * BM;
      const int left = (int)(tile % tile_columns) * BN;
      // The first window of the tile; the TMA finds the others.
      const int image = (int)(top / plane), place = (int)(top % plane);
      const int y = place / s.out_width * s.stride_y - s.pad_y,
                x = place % s.out_width * s.stride_x - s.pad_x;
      for (int channel = 0; channel < s.channels; channel += BK) {
        for (int r = 0, tap = 0; r < s.rows; ++r) {
          for (int c = 0; c < s.columns; ++c, ++tap, ring.advance()) {
            const int i = ring.stage;
            wait(&sh.empty[i], ring.parity ^ 1);
            arrive_and_expect(&sh.full[i], sizeof sh.a[0] + sizeof sh.b[0]);
            copy_pixels(sh.a[i], images, image, y, x, channel, r * s.dilation_y,
                        c * s.dilation_x, &sh.full[i]);
            copy_box(sh.b[i], weights, left, tap, channel, &sh.full[i]);
          }
        }
      }
    }
    // --8<-- [end:producer]
  } else {
    take_registers<TO_COMPUTE<CONSUMERS>>();
    const int consumer = threadIdx.x / 128 - 1, t = threadIdx.x % 128;
    const int steps = (s.channels + BK - 1) / BK * window;
    for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      const long long top = tile / tile_columns * BM + consumer * 64;
      const int left = (int)(tile % tile_columns) * BN;
      float sum[BN / 2];
      int before = 0;
      for (int step = 0; step < steps; ++step, ring.advance()) {
        const int i = ring.stage;
        wait(&sh.full[i], ring.parity);
        const Descriptor a(shared_address(sh.a[i] + consumer * (64 * 128))),
            b(shared_address(sh.b[i]));
        fence_sums();
#pragma unroll
        for (int k = 0; k < BK / 16; ++k)
          wgmma<true, true>(sum, a.at(k * NEXT_DEPTH<true>),
                            b.at(k * NEXT_DEPTH<true>), step > 0 || k > 0);
        close_products();
        wait_for_products<1>();
        if (step > 0 && t == 0) arrive(&sh.empty[before]);
        before = i;
      }
      wait_for_products<0>();
      if (t == 0) arrive(&sh.empty[before]);

      // As in the products: neighboring lanes exchange a pair, so that each
      // stores four neighboring filters.
      const long long row = top + t / 32 * 16 + t % 32 / 4;
      const bool odd = t % 2;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        __nv_bfloat16* const line = results + (row + half * 8) * s.filters;
#pragma unroll
        for (int j = 0; j < BN / 8; j += 2) {
          const float* const from = sum + 4 * j + 2 * half;
          const unsigned low = pack(from[0], from[1]),
                         high = pack(from[4], from[5]);
          const unsigned got = __shfl_xor_sync(~0u, odd ? low : high, 1);
          const int column = left + (j + odd) * 8 + t % 4 / 2 * 4;
          if (row + half * 8 < pixels && column < s.filters)
            *reinterpret_cast<uint2*>(line + column) =
                odd ? make_uint2(got, high) : make_uint2(low, got);
        }
      }
    }
  }
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance convolve<2,256,4>
// @instance convolve<3,128,5>
// @instance convolve<2,64,8>
