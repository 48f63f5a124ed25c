// Three ways to add up products of e4m3 numbers along the depth.
#pragma once
#include "fp8_wgmma.cuh"

// What a consumer gets of a stage.
struct Stage {
  int index;
  unsigned a, b;          // addresses of its 64 rows of A, of all columns of B
  const float* scales_a;  // of its 64 rows of A at this depth
};

// --8<-- [start:one]
// One level: the tensor cores add up the whole depth.
template <int COLUMNS>
struct OneLevel {
  static constexpr int BN = COLUMNS;
  static constexpr bool BLOCKS = false;
  float sum[BN / 2];
  int before;

  static __device__ __forceinline__ void enter() {}
  static __device__ __forceinline__ void leave() {}
  __device__ __forceinline__ void begin() {}

  // The products of this stage are under way when this returns, those of the
  // stage before have ended: `release` says that a stage is read.
  template <class Release>
  __device__ __forceinline__ void add(const Stage& at, int step,
                                      Release&& release) {
    multiply_stage(sum, at.a, at.b, step > 0);
    wait_for_products<1>();
    if (step > 0) release(before);
    before = at.index;
  }

  template <class Release>
  __device__ __forceinline__ void end(Release&& release) {
    wait_for_products<0>();
    release(before);
  }
};
// --8<-- [end:one]

// --8<-- [start:turns]
// Barriers 3 and 4 of the hardware: one consumer waits there for its turn, the
// other arrives and goes on.
__device__ __forceinline__ void await_turn() {
  asm volatile("bar.sync %0, 256;" ::"r"(threadIdx.x / 128 + 2) : "memory");
}

__device__ __forceinline__ void pass_turn() {
  asm volatile("bar.arrive %0, 256;" ::"r"(5 - threadIdx.x / 128) : "memory");
}
// --8<-- [end:turns]

// --8<-- [start:two]
// Two levels: the tensor cores add up a stage, 128 steps, and ordinary FMAs in
// fp32 add that to the sum. PART columns at a time, because sum and part have
// to fit into the registers together. While one consumer adds, the tensor cores
// work for the other.
//
// BLOCKS: a part has scales of its own, one for each row of A and 128 columns
// of B, and is multiplied by them as it is added.
//
// TURNS: the consumers take turns at the tensor cores. A part begins when only
// the last of the other consumer's four instructions is left.
//
// HELD: A is brought into registers once for all parts, instead of being read
// from shared memory with each.
//
// AHEAD: so many parts are under way at a time.
template <int COLUMNS, int PART, bool SCALED, bool TURNS = false,
          bool HELD = false, int AHEAD = 1>
struct TwoLevels {
  static constexpr int BN = COLUMNS, PARTS = BN / PART;
  static constexpr int SCALES = (BN + 127) / 128;
  static constexpr bool BLOCKS = SCALED;
  static_assert(BN % PART == 0 && (!BLOCKS || 128 % PART == 0), "whole parts");
  static_assert(!TURNS || AHEAD == 1, "turns are of one part");
  float sum[BN / 2];
  const float* scales_b[SCALES];  // of the next stage
  float next[SCALES];
  int last;

  static __device__ __forceinline__ void enter() {  // consumer 0 is the first
    if (TURNS && threadIdx.x / 128 == 2) pass_turn();
  }
  static __device__ __forceinline__ void leave() {
    if (TURNS && threadIdx.x / 128 == 1) await_turn();
  }

  __device__ __forceinline__ void begin() {
#pragma unroll
    for (int i = 0; i < BN / 2; ++i) sum[i] = 0.0f;
  }

  // The scales of B are [n / 128, steps]. Each is loaded one stage ahead.
  __device__ __forceinline__ void scale_by(const float* scales, int steps,
                                           int left, int n) {
#pragma unroll
    for (int i = 0; i < SCALES; ++i) {
      const int row = min(left / BK + i, (n - 1) / BK);
      scales_b[i] = scales + (size_t)row * steps;
      next[i] = __ldg(scales_b[i]);
    }
    last = steps - 1;
  }

  template <class Release>
  __device__ __forceinline__ void add(const Stage& at, int step,
                                      Release&& release) {
    const int t = threadIdx.x % 128, row = t / 32 * 16 + t % 32 / 4;
    float a[2], b[SCALES];
    if constexpr (BLOCKS) {
      a[0] = at.scales_a[row], a[1] = at.scales_a[row + 8];
#pragma unroll
      for (int i = 0; i < SCALES; ++i) {
        b[i] = next[i];
        next[i] = __ldg(scales_b[i] + min(step + 1, last));
      }
    }
    unsigned held[BK / 32][4];
    if constexpr (HELD) hold(held, at.a);
    float parts[AHEAD][PART / 2];
    const auto start = [&](int i) {
      if constexpr (TURNS) await_turn();
      if constexpr (HELD)
        multiply_stage<TURNS>(parts[i % AHEAD], held, at.b + i * PART * BK);
      else
        multiply_stage<TURNS>(parts[i % AHEAD], at.a, at.b + i * PART * BK,
                              false);
      if constexpr (TURNS) wait_for_products<1>(), pass_turn();
    };
#pragma unroll
    for (int i = 0; i < AHEAD - 1; ++i) start(i);
#pragma unroll
    for (int i = 0; i < PARTS; ++i) {
      if (i + AHEAD <= PARTS) {
        start(i + AHEAD - 1);
        wait_for_products<AHEAD - 1>();
      } else {
        wait_for_products<0>();
      }
      if (i == PARTS - 1) release(at.index);
      const float* const part = parts[i % AHEAD];
      float* const to = sum + i * PART / 2;
      if constexpr (BLOCKS) {
        float& of_b = b[i * PART / 128];
        asm volatile("" : "+f"(of_b));  // not before the products
        const float scale[2] = {a[0] * of_b, a[1] * of_b};
#pragma unroll
        for (int j = 0; j < PART / 2; ++j) to[j] += scale[j / 2 % 2] * part[j];
      } else {
#pragma unroll
        for (int j = 0; j < PART / 2; ++j) to[j] += part[j];
      }
    }
  }

  template <class Release>
  __device__ __forceinline__ void end(Release&&) {}
};
// --8<-- [end:two]
