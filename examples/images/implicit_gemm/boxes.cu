// Convolution in fp32, NCHW, with copies by the TMA: a tile of B is some boxes
// of the image, and what a box has outside of it arrives as zeros. No thread
// computes an address, and none tests one. But the TMA takes boxes that begin
// at multiples of 16 bytes only, so the taps of a row have to lie four words
// apart: this is for windows of one column.
//
//   copy_pixels  starts to copy a box of the images
//   convolution  the kernel
//
// requires: sm_90
#include "images/implicit_gemm/store.cuh"
#include "images/shape.cuh"
#include "ptx/tma.cuh"
#include "published/final.cuh"

// --8<-- [start:copy]
// Start to copy the box of the images that begins at (image, channel, y, x).
//
// PTX ISA: cp.async.bulk.tensor
__device__ __forceinline__ void copy_pixels(void* to, const CUtensorMap& map,
                                            int image, int channel, int y,
                                            int x, Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile"
      ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(
          shared_address(to)),
      "l"(&map), "r"(x), "r"(y), "r"(channel), "r"(image),
      "r"(shared_address(barrier))
      : "memory");
}
// --8<-- [end:copy]

// The convolution (a cross-correlation) of images with weights in the order of
// `turned_weights`; strides are 1. A tile has BM filters, and BN results'
// places: boxes of HIGH x WIDE neighbors, one after the other.
//
// images: a map with boxes of 1 x BK x HIGH x WIDE. turned: a map of all rows
// of weights, [groups * taps * channels, padded to BK][filters], with boxes of
// BK x BM. With more than one group the channels are a multiple of BK. Grid: x
// the tiles, those of the same pixels side by side; y the groups.
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int TM, int TN, int STAGES, int BLOCKS,
          int HIGH, int WIDE>
__global__ void __launch_bounds__(BM* BN / (TM * TN), BLOCKS)
    convolution(const __grid_constant__ CUtensorMap images,
                const __grid_constant__ CUtensorMap turned,
                float* __restrict__ results, const Shape s) {
  constexpr int LANE_ROWS = BM % (8 * TM) == 0 ? 8 : 4,
                LANE_COLUMNS = 32 / LANE_ROWS,
                WARP_COLUMNS = BN / (LANE_COLUMNS * TN);
  constexpr int BOX = HIGH * WIDE, BOXES = BN / BOX;
  // From a thread's four columns to its next four.
  constexpr int NEXT = LANE_COLUMNS * 4,
                APART = NEXT < BOX ? NEXT : NEXT / BOX * (BK * BOX);
  static_assert(BOXES <= 32 && (NEXT < BOX ? BOX % (LANE_COLUMNS * TN) == 0
                                           : NEXT % BOX == 0),
                "boxes");
  constexpr int TILE_A = BK * BM, TILE_B = BK * BN;
  extern __shared__ __align__(128) float tiles[];
  float* const tiles_b = tiles + STAGES * TILE_A;
  __shared__ Barrier full[STAGES];

  const int tile_rows = (s.filters + BM - 1) / BM;
  const int top_tile = blockIdx.x % tile_rows * BM;
  const long long first_box = (long long)(blockIdx.x / tile_rows) * BOXES;
  const int group = blockIdx.y;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / WARP_COLUMNS * (LANE_ROWS * TM);
  const int warp_column = warp % WARP_COLUMNS * (LANE_COLUMNS * TN);
  const int boxes_right = (s.out_width + WIDE - 1) / WIDE,
            boxes_down = (s.out_height + HIGH - 1) / HIGH;
  const auto place_of_box = [&](long long box, int& y, int& x) {
    const int in_image = (int)(box % (boxes_right * boxes_down));
    y = in_image / boxes_right * HIGH, x = in_image % boxes_right * WIDE;
    return (int)(box / (boxes_right * boxes_down));
  };

  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) init(&full[i], 1);
    fence_init();
    prefetch(images), prefetch(turned);
  }
  __syncthreads();

  // --8<-- [start:producer]
  // Of the first warp each lane copies a box of the images, and the first one
  // also that of the weights.
  const int steps = s.rows * s.columns * ((s.channels + BK - 1) / BK);
  int y = 0, x = 0, row = 0, column = 0, channel = 0, next = 0;
  const int image = place_of_box(first_box + threadIdx.x % 32, y, x);
  y -= s.pad_y, x -= s.pad_x;
  const auto copy = [&](int slot) {
    if (threadIdx.x == 0) {
      arrive_and_expect(&full[slot], (TILE_A + TILE_B) * 4);
      copy_box(tiles + slot * TILE_A, turned, (group * steps + next) * BK,
               top_tile, &full[slot]);
    }
    __syncwarp();
    if (threadIdx.x < BOXES)
      copy_pixels(tiles_b + slot * TILE_B + threadIdx.x * (BK * BOX), images,
                  image, group * s.channels + channel, y + row * s.dilation_y,
                  x + column * s.dilation_x, &full[slot]);
    ++next;
    channel += BK;
    if (channel >= s.channels) {
      channel = 0;
      if (++column == s.columns) column = 0, ++row;
    }
  };
  // --8<-- [end:producer]
  if (warp == 0)
    for (int i = 0; i < STAGES - 1 && i < steps; ++i) copy(i);

  const float* const a_lane = tiles + warp_row + lane_row<LANE_ROWS>() * 4;
  const int first = warp_column + lane_column<LANE_ROWS>() * 4;
  const float* const b_lane = tiles_b + first / BOX * (BK * BOX) + first % BOX;
  const float *a_from = a_lane, *b_from = b_lane;
  float a[2][TM], b[2][TN], sum[TN][TM] = {};
  wait(&full[0], 0);
  read<TM, LANE_ROWS * 4>(a[0], a_from);
  read<TN, APART>(b[0], b_from);
  int slot = 0, parity = 0;
  // Which step is copied next: that of slot `slot - 1`, all of whose words have
  // been read.
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    if (warp == 0 && next < steps) copy(slot > 0 ? slot - 1 : STAGES - 1);
#pragma unroll
    for (int kk = 0; kk < BK; ++kk) {
      if (kk == BK - 1) {
        if (++slot == STAGES) slot = 0, parity ^= 1;
        a_from = a_lane + slot * TILE_A, b_from = b_lane + slot * TILE_B;
        if (step + 1 < steps) wait(&full[slot], parity);
        __syncthreads();
      }
      const int k = (kk + 1) % BK;
      read<TM, LANE_ROWS * 4>(a[(kk + 1) % 2], a_from + k * BM);
      read<TN, APART>(b[(kk + 1) % 2], b_from + k * BOX);
      multiply(sum, a[kk % 2], b[kk % 2]);
    }
  }

  const int plane = s.out_height * s.out_width;
  const auto at = [&](int column) -> float* {
    const int i = (warp_column + column) / BOX,
              in_box = (warp_column + column) % BOX;
    int down, right;
    const int of = place_of_box(first_box + i, down, right);
    down += in_box / WIDE, right += in_box % WIDE;
    if (of >= s.images || down >= s.out_height || right >= s.out_width)
      return nullptr;
    return results +
           (((long long)of * s.groups + group) * s.filters + top_tile +
            warp_row) *
               plane +
           down * s.out_width + right;
  };
  constexpr int WORDS_OF_WARP = LANE_COLUMNS * TN * (LANE_ROWS * 4 + 4);
  __syncthreads();
  store_tile<LANE_ROWS>(sum, tiles + warp * WORDS_OF_WARP,
                        s.filters - top_tile - warp_row, plane, at);
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance convolution<64,128,16,8,8,3,3,1,64>
// @instance convolution<64,128,16,8,8,3,3,1,16>
