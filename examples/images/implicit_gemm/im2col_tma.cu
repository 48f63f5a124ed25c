// Convolution in bf16, NHWC, on wgmma: the TMA fetches the windows themselves.
//
//   copy_pixels   starts to copy a box of pixels, each moved by an offset
//   copy_box      a box of an array of three axes
//   Shared        what lies in shared memory
//   convolve      the kernel
//
// requires: sm_90a
#include "images/shape.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/special.cuh"
#include "ptx/ticket.cuh"
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

// A stage has BK channels of one place in the window: 64, a line of 128 bytes
// of a box, or 32, one of 64 bytes.
template <int CONSUMERS, int BN, int STAGES, int BK>
struct Shared {
  unsigned char a[STAGES][CONSUMERS * 64 * BK * 2], b[STAGES][BN * BK * 2];
  // Of each warp that computes: 16 lines of 64 results.
  unsigned char results[CONSUMERS * 4][16 * 128];
  Barrier full[STAGES], empty[STAGES];
  bool last[CONSUMERS];
};

// Where a factor of this kind begins: its eight lines are a group. Lines of 64
// bytes have the swizzle of 64 bytes, which is 2 in the highest two bits.
template <int BK>
__device__ __forceinline__ Descriptor factor(const unsigned char* at) {
  Descriptor found(shared_address(at), 16, BK * 16);
  if (BK == 32) found.bits ^= 3ull << 62;
  return found;
}

// Registers of a thread that copies, and of one that computes.
template <int CONSUMERS>
constexpr int TO_COPY = CONSUMERS == 3 ? 32 : 40;
template <int CONSUMERS>
constexpr int TO_COMPUTE = CONSUMERS == 3   ? 160
                           : CONSUMERS == 2 ? 232
                                            : 240;

// The convolution of images, [image][y][x][channel]; weights as [filter][row *
// columns][channel of the group]; results like images. A result's pixel is a
// row of the product, a filter a column, a place in the window and a channel a
// step of depth. channels and filters of a group are multiples of 8. A tile has
// 64 pixels for each of CONSUMERS warpgroups, and BN filters.
//
// images is an im2col map with boxes of CONSUMERS * 64 pixels and BK channels,
// weights a map with boxes of BN x 1 x BK. With several groups the channels of
// a group are a multiple of BK.
//
// The depth of a tile is cut into `parts` parts of per_part steps, the last one
// has the rest. partials: CONSUMERS * 64 * BN words for each part of each tile;
// tickets: a 0 for each consumer of each tile. Grid: as many blocks as there
// are SMs, or parts of tiles if these are fewer. Dynamic shared memory: Shared.
// --8<-- [start:kernel]
template <int CONSUMERS, int BN, int STAGES, int BK>
__global__ void __launch_bounds__(128 + CONSUMERS * 128, 1)
    convolve(const __grid_constant__ CUtensorMap images,
             const __grid_constant__ CUtensorMap weights,
             __nv_bfloat16* __restrict__ results, const Shape s, int parts,
             int per_part, float* __restrict__ partials,
             unsigned* __restrict__ tickets) {
  constexpr int BM = CONSUMERS * 64;
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& sh = *reinterpret_cast<Shared<CONSUMERS, BN, STAGES, BK>*>(memory);
  const int plane = s.out_height * s.out_width;
  const long long pixels = (long long)s.images * plane;
  // Tiles of the same pixels side by side: all filters of all groups.
  const int of_group = (s.filters + BN - 1) / BN,
            tile_columns = of_group * s.groups;
  const long long tiles = (pixels + BM - 1) / BM * tile_columns,
                  units = tiles * parts;
  const int window = s.rows * s.columns;
  const int all = (s.channels + BK - 1) / BK * window;
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
    for (long long unit = blockIdx.x; unit < units; unit += gridDim.x) {
      const long long tile = unit % tiles, top = tile / tile_columns * BM;
      const int across = (int)(tile % tile_columns), group = across / of_group,
                left = group * s.filters + across % of_group * BN;
      // The first window of the tile; the TMA finds the others.
      const int image = (int)(top / plane), place = (int)(top % plane);
      const int y = place / s.out_width * s.stride_y - s.pad_y,
                x = place % s.out_width * s.stride_x - s.pad_x;
      const int start = (int)(unit / tiles) * per_part;
      int tap = start % window, channel = start / window * BK;
      int r = tap / s.columns, c = tap % s.columns;
      for (int step = min(per_part, all - start); step > 0; --step) {
        const int i = ring.stage;
        wait(&sh.empty[i], ring.parity ^ 1);
        arrive_and_expect(&sh.full[i], sizeof sh.a[0] + sizeof sh.b[0]);
        copy_pixels(sh.a[i], images, image, y, x, group * s.channels + channel,
                    r * s.dilation_y, c * s.dilation_x, &sh.full[i]);
        copy_box(sh.b[i], weights, left, tap, channel, &sh.full[i]);
        ring.advance();
        ++tap;
        if (++c == s.columns) c = 0, ++r;
        if (tap == window) tap = r = 0, channel += BK;
      }
    }
    // --8<-- [end:producer]
  } else {
    take_registers<TO_COMPUTE<CONSUMERS>>();
    const int consumer = threadIdx.x / 128 - 1, t = threadIdx.x % 128;
    for (long long unit = blockIdx.x; unit < units; unit += gridDim.x) {
      const long long tile = unit % tiles;
      const int part = (int)(unit / tiles),
                steps = min(per_part, all - part * per_part);
      float sum[BN / 2];
      int before = 0;
      for (int step = 0; step < steps; ++step, ring.advance()) {
        const int i = ring.stage;
        wait(&sh.full[i], ring.parity);
        const Descriptor a = factor<BK>(sh.a[i] + consumer * (64 * BK * 2)),
                         b = factor<BK>(sh.b[i]);
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

      // --8<-- [start:parts]
      // Each part leaves its sums; the last one to come adds up all of them, in
      // the order of the depth.
      if (parts > 1) {
        const long long mine = tile * CONSUMERS + consumer;
        float* const left = partials + mine * parts * (64 * BN) + t;
#pragma unroll
        for (int j = 0; j < BN / 2; ++j)
          left[part * (64 * BN) + j * 128] = sum[j];
        sync_at<128>(1 + consumer);
        if (t == 0) sh.last[consumer] = last_to_arrive(tickets + mine, parts);
        sync_at<128>(1 + consumer);
        if (!sh.last[consumer]) continue;
#pragma unroll
        for (int j = 0; j < BN / 2; ++j) sum[j] = 0.0f;
        for (int p = 0; p < parts; ++p)
#pragma unroll
          for (int j = 0; j < BN / 2; ++j)
            sum[j] += __ldcg(left + p * (64 * BN) + j * 128);
      }
      // --8<-- [end:parts]

      // --8<-- [start:store]
      // A warp has 16 pixels. It puts 64 filters of each into a line of shared
      // memory, whose pieces of 16 bytes are exchanged by the number of the
      // line, and takes the lines out again: so its stores are whole lines.
      const long long top =
          tile / tile_columns * BM + consumer * 64 + t / 32 * 16;
      const int across = (int)(tile % tile_columns), group = across / of_group,
                left = across % of_group * BN, lane = t % 32;
      unsigned char* const lines = sh.results[threadIdx.x / 32 - 4];
#pragma unroll
      for (int column = 0; column < BN; column += 64) {
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int line = lane / 4 + half * 8;
            const float* const two = sum + column / 2 + 4 * j + 2 * half;
            *reinterpret_cast<unsigned*>(lines + line * 128 +
                                         (j ^ line % 8) * 16 + lane % 4 * 4) =
                pack(two[0], two[1]);
          }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 16; i += 4) {
          const int line = i + lane / 8, filter = left + column + lane % 8 * 8;
          const uint4 eight = *reinterpret_cast<const uint4*>(
              lines + line * 128 + (lane % 8 ^ line % 8) * 16);
          if (top + line < pixels && filter < s.filters)
            *reinterpret_cast<uint4*>(
                results + ((top + line) * s.groups + group) * s.filters +
                filter) = eight;
        }
        __syncwarp();
      }
      // --8<-- [end:store]
    }
  }
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance convolve<2,256,4,64>
// @instance convolve<3,128,5,64>
// @instance convolve<2,192,5,64>
// @instance convolve<2,128,6,64>
// @instance convolve<3,64,6,64>
// @instance convolve<2,64,8,64>
// @instance convolve<2,128,12,32>
// @instance convolve<3,64,12,32>
