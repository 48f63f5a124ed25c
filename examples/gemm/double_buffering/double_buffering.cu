// One product, C = A B, in four orders of loading and multiplying, with the
// clock read in between, and with both kinds of A tile for both kinds of copy.
//
//   ONE_BUFFER ... ASYNC  the orders
//   ISSUED ... DONE       the events whose cycle is noted
//   now                   the clock of this SM
//   ordered               the kernel
//
// expect: spills
#include <cuda_pipeline.h>

constexpr int BM = 128, BN = 128, WM = 32, WN = 64, TM = 8, TN = 8,
              THREADS = 256;

// The orders:
//
//   ONE_BUFFER         load a tile, then multiply it: one buffer, two barriers
//   TWO_BUFFERS        load a tile, then multiply it: two buffers, one barrier
//   THROUGH_REGISTERS  start to load the next tile, then multiply this one; the
//                      next tile waits in registers
//   ASYNC              the same, but the next tile goes straight to shared
//                      memory
constexpr int ONE_BUFFER = 0, TWO_BUFFERS = 1, THROUGH_REGISTERS = 2, ASYNC = 3;

// The events of each tile that are stamped: the first of its loads is issued,
// the tile has arrived, its multiplication begins, and it is done.
constexpr int ISSUED = 0, ARRIVED = 1, BEGUN = 2, DONE = 3, EVENTS = 4;

// --8<-- [start:clock]
// Cycles of this SM. The memory clobber keeps loads and stores on their side of
// the reading.
__device__ __forceinline__ unsigned now() {
  unsigned cycles;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(cycles)::"memory");
  return cycles;
}
// --8<-- [end:clock]

// C = A B, row-major: A is m x k, B is k x n; m is a multiple of BM, n of BN, k
// of BK. Grid: x over the columns, y over the rows. stamps: EVENTS words for
// each of the tiles `first` to `first` + `count` - 1, of each block.
//
//   BK       steps of depth in shared memory at a time: a multiple of 8
//   ORDER    one of the four orders above
//   TURNED   whether a tile of A lies in shared memory with its depth
//            downwards, so that four neighboring words are four rows; otherwise
//            it lies as in global memory, and four words are four steps of
//            depth
//   STAMPED  whether the clock is read
template <int BK, int ORDER, bool TURNED, bool STAMPED>
__global__ void __launch_bounds__(THREADS, 2)
    ordered(const float* __restrict__ A, const float* __restrict__ B,
            float* __restrict__ C, int n, int k, unsigned* __restrict__ stamps,
            int first, int count) {
  __shared__ __align__(16) float As[2][BK * (BM + 4)];
  __shared__ __align__(16) float Bs[2][BK][BN];
  const int t = threadIdx.x, warp = t / 32, lane = t % 32;
  const int left = blockIdx.x * BN, top = blockIdx.y * BM;
  constexpr int LANES = WN / TN, NEXT = LANES * 4,
                BELOW = TURNED ? 1 : 32 / LANES;
  const int lane_x = lane / 2 % LANES,
            lane_y = lane / (2 * LANES) * 2 + lane % 2;
  const int x = warp % (BN / WN) * WN + lane_x * 4;
  const int y = warp / (BN / WN) * WM + lane_y * (TURNED ? TM : 1);
  float sum[TM][TN] = {};

  // --8<-- [start:stamp]
  const int block = blockIdx.y * gridDim.x + blockIdx.x;
  const auto stamp = [&](int tile, int event) {
    if constexpr (STAMPED)
      if (t == 0 && tile >= first && tile < first + count)
        stamps[(block * count + tile - first) * EVENTS + event] = now();
  };
  // --8<-- [end:stamp]

  const auto place_a = [](int inner, int row) {
    return TURNED ? inner * (BM + 4) + row
                  : (inner / 8 * BM + row) * 8 + inner % 8;
  };
  constexpr int PARTS =
      BM * BK / 4 / THREADS;  // of A, and as many of B: four words each
  float4 a_next[PARTS], b_next[PARTS];
  const auto fetch = [&](int start) {
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
      const int i = part * THREADS + t;
      const int row = i / 2 % BM, inner = i / 2 / BM * 8 + t % 2 * 4;
      a_next[part] = *reinterpret_cast<const float4*>(
          A + (size_t)(top + row) * k + start + inner);
      b_next[part] = *reinterpret_cast<const float4*>(
          B + (size_t)(start + i / (BN / 4)) * n + left + i % (BN / 4) * 4);
    }
  };
  const auto keep = [&](int stage) {
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
      const int i = part * THREADS + t;
      const int row = i / 2 % BM, inner = i / 2 / BM * 8 + t % 2 * 4;
      const float4 a = a_next[part];
      float* to = &As[stage][TURNED ? place_a(inner, row) : 4 * i];
      if constexpr (TURNED) {
        to[0] = a.x;
        to[BM + 4] = a.y;
        to[2 * (BM + 4)] = a.z;
        to[3 * (BM + 4)] = a.w;
      } else {
        *reinterpret_cast<float4*>(to) = a_next[part];
      }
      *reinterpret_cast<float4*>(&Bs[stage][i / (BN / 4)][i % (BN / 4) * 4]) =
          b_next[part];
    }
  };
  const auto copy = [&](int stage, int start) {
    if (start < k) {
#pragma unroll
      for (int part = 0; part < PARTS; ++part) {
        const int i = part * THREADS + t;
        const int row = i / 2 % BM, inner = i / 2 / BM * 8 + t % 2 * 4;
        const float* from = A + (size_t)(top + row) * k + start + inner;
        float* to = &As[stage][TURNED ? place_a(inner, row) : 4 * i];
        if constexpr (TURNED) {  // each word goes to a row of its own
#pragma unroll
          for (int j = 0; j < 4; ++j)
            __pipeline_memcpy_async(to + j * (BM + 4), from + j, 4);
        } else {
          __pipeline_memcpy_async(to, from, 16);
        }
        __pipeline_memcpy_async(
            &Bs[stage][i / (BN / 4)][i % (BN / 4) * 4],
            B + (size_t)(start + i / (BN / 4)) * n + left + i % (BN / 4) * 4,
            16);
      }
    }
    __pipeline_commit();
  };
  const auto multiply_turned = [&](int stage) {
#pragma unroll
    for (int i = 0; i < BK; ++i) {
      __align__(16) float a[TM], b[TN];
#pragma unroll
      for (int r = 0; r < TM; r += 4)
        *reinterpret_cast<float4*>(&a[r]) =
            *reinterpret_cast<const float4*>(&As[stage][place_a(i, y + r)]);
#pragma unroll
      for (int c = 0; c < TN; c += 4)
        *reinterpret_cast<float4*>(&b[c]) =
            *reinterpret_cast<const float4*>(&Bs[stage][i][x + c / 4 * NEXT]);
#pragma unroll
      for (int r = 0; r < TM; ++r)
#pragma unroll
        for (int c = 0; c < TN; ++c) sum[r][c] += a[r] * b[c];
    }
  };
  const auto multiply_along = [&](int stage) {
#pragma unroll
    for (int i = 0; i < BK; i += 4) {
      __align__(16) float a[TM][4], b[TN];
#pragma unroll
      for (int r = 0; r < TM; ++r)
        *reinterpret_cast<float4*>(a[r]) = *reinterpret_cast<const float4*>(
            &As[stage][place_a(i, y + r * BELOW)]);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int c = 0; c < TN; c += 4)
          *reinterpret_cast<float4*>(&b[c]) = *reinterpret_cast<const float4*>(
              &Bs[stage][i + j][x + c / 4 * NEXT]);
#pragma unroll
        for (int r = 0; r < TM; ++r)
#pragma unroll
          for (int c = 0; c < TN; ++c) sum[r][c] += a[r][j] * b[c];
      }
    }
  };
  const auto multiply = [&](int stage) {
    if constexpr (TURNED)
      multiply_turned(stage);
    else
      multiply_along(stage);
  };

  int stage = 0;
  if constexpr (ORDER == ONE_BUFFER || ORDER == TWO_BUFFERS) {
    // --8<-- [start:late]
    for (int tile = 0; tile < k / BK; ++tile) {
      stamp(tile, ISSUED);
      fetch(tile * BK);
      keep(stage);
      stamp(tile, ARRIVED);
      __syncthreads();
      stamp(tile, BEGUN);
      multiply(stage);
      stamp(tile, DONE);
      if (ORDER == ONE_BUFFER)
        __syncthreads();
      else
        stage ^= 1;  // threads that still read have the other buffer
    }
    // --8<-- [end:late]
  } else if constexpr (ORDER == THROUGH_REGISTERS) {
    // --8<-- [start:early]
    fetch(0);
    keep(stage);
    __syncthreads();
    for (int tile = 0; tile < k / BK; ++tile) {
      stamp(tile + 1, ISSUED);
      if (tile + 1 < k / BK) fetch((tile + 1) * BK);
      stamp(tile, BEGUN);
      multiply(stage);
      stamp(tile, DONE);
      stage ^= 1;
      keep(stage);
      stamp(tile + 1, ARRIVED);
      __syncthreads();
    }
    // --8<-- [end:early]
  } else {
    // --8<-- [start:async]
    copy(stage, 0);
    for (int tile = 0; tile < k / BK; ++tile) {
      __pipeline_wait_prior(0);
      stamp(tile, ARRIVED);
      __syncthreads();
      stamp(tile + 1, ISSUED);
      copy(stage ^ 1, (tile + 1) * BK);
      stamp(tile, BEGUN);
      multiply(stage);
      stamp(tile, DONE);
      stage ^= 1;
    }
    // --8<-- [end:async]
  }

#pragma unroll
  for (int r = 0; r < TM; ++r)
#pragma unroll
    for (int c = 0; c < TN; c += 4)
      *reinterpret_cast<float4*>(C + (size_t)(top + y + r * BELOW) * n + left +
                                 x + c / 4 * NEXT) =
          make_float4(sum[r][c], sum[r][c + 1], sum[r][c + 2], sum[r][c + 3]);
}

// Instances that are compiled by the tests:
// @instance ordered<8, ONE_BUFFER, true, true>
// @instance ordered<8, TWO_BUFFERS, true, true>
// @instance ordered<8, THROUGH_REGISTERS, true, true>
// @instance ordered<8, ASYNC, false, true>
