// Ways to add up products of e4m3 numbers along the depth. A kernel has one of
// the first three as a template parameter:
//
//   OneLevel<COLUMNS>                one sum, by the tensor cores
//   TwoLevels<COLUMNS, PART, false>  a sum for each stage, added up in fp32
//   TwoLevels<COLUMNS, PART, true>   the same, with scales of blocks
//   Stage                            what they get of a stage
#pragma once
#include "ptx/fp8_wgmma.cuh"

// What a consumer gets of a stage. a, b: the lower words of the descriptors of
// its 64 rows of A, and of all columns of B.
struct Stage {
  int index;
  unsigned a, b;
  const float* scales_a;  // of its 64 rows of A at this depth
  const float* scales_b;  // of the first 128 columns of B at this depth
  int next;               // from there to that of the next 128 columns
};

// --8<-- [start:one]
// One level: the tensor cores add up the whole depth. COLUMNS: of a tile.
template <int COLUMNS>
struct OneLevel {
  static constexpr int BN = COLUMNS;
  static constexpr bool BLOCKS = false;
  float sum[BN / 2];
  int before;

  __device__ __forceinline__ void begin() {}

  // Add the products of a stage. When this returns they are still running;
  // those of the stage before have ended. `release` says that a stage is read.
  // `await_next` waits until the next stage is there.
  template <class Release, class Next>
  __device__ __forceinline__ void add(const Stage& at, int step,
                                      Release&& release, Next&& await_next) {
    multiply_stage(sum, at.a, at.b, step > 0);
    wait_for_products<1>();
    if (step > 0) release(before);
    before = at.index;
    await_next();
  }

  // Wait for the last products, and give the last stage back.
  template <class Release>
  __device__ __forceinline__ void end(Release&& release) {
    wait_for_products<0>();
    release(before);
  }
};
// --8<-- [end:one]

// --8<-- [start:two]
// Two levels: the tensor cores add up a stage, 128 steps, and ordinary fp32
// additions add the result, the part, to the sum. This goes by PART of the
// COLUMNS columns at a time, because sum and part have to fit into the
// registers together. While one consumer adds, the tensor cores work for the
// other. The wait for the next stage comes while the last products of this one
// run, so that between them and the next products there are only additions.
//
// SCALED: a part has scales of its own, one for each row of A and one for each
// 128 columns of B, and is multiplied by them as it is added. Then PART is 128.
template <int COLUMNS, int PART, bool SCALED>
struct TwoLevels {
  static constexpr int BN = COLUMNS;
  static constexpr bool BLOCKS = SCALED;
  static_assert(BN % PART == 0 && (!BLOCKS || PART == 128), "whole parts");
  float sum[BN / 2];

  __device__ __forceinline__ void begin() {
#pragma unroll
    for (int i = 0; i < BN / 2; ++i) sum[i] = 0.0f;
  }

  // The same, but the products of this stage have ended when this returns.
  template <class Release, class Next>
  __device__ __forceinline__ void add(const Stage& at, int, Release&& release,
                                      Next&& await_next) {
    const int t = threadIdx.x % 128, row = t / 32 * 16 + t % 32 / 4;
    const float a[2] = {BLOCKS ? at.scales_a[row] : 1.0f,
                        BLOCKS ? at.scales_a[row + 8] : 1.0f};
#pragma unroll
    for (int i = 0; i < BN / PART; ++i) {
      float part[PART / 2];
      multiply_stage(part, at.a, at.b + i * (PART * BK / 16), false);
      const float* of_b = at.scales_b + i * at.next;
      asm volatile("" : "+l"(of_b));  // so its load follows the products
      const float b = BLOCKS ? __ldg(of_b) : 1.0f;
      const float scale[2] = {a[0] * b, a[1] * b};
      if (i == BN / PART - 1) await_next();
      wait_for_products<0>();
      if (i == BN / PART - 1) release(at.index);
#pragma unroll
      for (int j = 0; j < PART / 2; ++j)
        sum[i * PART / 2 + j] += scale[j / 2 % 2] * part[j];
    }
  }

  template <class Release>
  __device__ __forceinline__ void end(Release&&) {}
};
// --8<-- [end:two]
