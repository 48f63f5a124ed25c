// Epilogues: what becomes of sums before they are rounded and stored. At most
//
//     C = scale activation(alpha A B + bias) + beta R
//
// where bias has an element for each column, and R, the residual, has the shape
// of C, and may be C itself. All of this is computed in fp32 and rounded once.
// A kernel has one of these as a template parameter:
//
//   Bare               none of it: C = A B
//   Linear             alpha and beta only: C = alpha A B + beta C
//   Fused<Activation>  all of it
//
//   Extra     what Fused reads besides alpha, beta and C
//   activate  the activation of sums
//   add_box   adds a box of R
#pragma once
#include "activations.cuh"
#include "bias.cuh"
#include "hopper/boxes.cuh"
#include "lines.cuh"
#include "ptx/mma.cuh"
#include "results.cuh"

// --8<-- [start:extra]
// What an epilogue reads besides alpha, beta and C. Out: the type of C.
template <class Out>
struct Extra {
  const __nv_bfloat16* bias;  // n of them, or null
  const Out* residual;        // read where beta is not 0
  const CUtensorMap* map;     // of the residual, boxes of 64 x 64; or null
  float scale;
};
// --8<-- [end:extra]

// Alpha and beta only: the kernel calls `scale` of results.cuh.
struct Linear {
  static constexpr bool FUSED = false, BARE = false;
};

// Not even these: alpha is 1, beta is 0, every tile is computed whole, and the
// TMA stores C. A launch fetches its instructions from DRAM if no kernel has
// run them for a while. In this version no instructions for rare cases lie
// between the others.
struct Bare {
  static constexpr bool FUSED = false, BARE = true;
};

// --8<-- [start:columns]
// sum = scale activation(alpha sum + bias) for the 64 columns number `which`.
template <class Activation, int SIZE, class Work>
__device__ __forceinline__ void activate(float (&sum)[SIZE], int which,
                                         const Work& work,
                                         const Bias<SIZE>& bias) {
  const Activation activation;
  const float alpha = work.alpha, scale = work.extra.scale;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float2 b = bias.of(which, j);
    float* const s = sum + 32 * which + 4 * j;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      s[i] = scale * activation(alpha * s[i] + b.x);
      s[i + 1] = scale * activation(alpha * s[i + 1] + b.y);
    }
  }
}
// --8<-- [end:columns]

// --8<-- [start:read]
// Add beta times a box of R, which the TMA has written: the reverse of
// write_box. ldmatrix gives each lane the elements that belong to its sums.
template <int SIZE>
__device__ __forceinline__ void add_box(float (&sum)[SIZE], int which,
                                        unsigned box, float beta) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
  const unsigned line = box + (warp * 16 + lane % 16) * 128;
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    unsigned word[4];
    ldmatrix(word, line + ((2 * pair + lane / 16) ^ lane % 8) * 16);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float* const s = sum + 32 * which + 8 * pair + 2 * i;
      s[0] += beta * __uint_as_float(word[i] << 16);
      s[1] += beta * __uint_as_float(word[i] & 0xffff0000);
    }
  }
}
// --8<-- [end:read]

// The whole epilogue, for factors in bf16. Activation: a class of
// activations.cuh. In its functions BUFFERS is the number of a consumer's boxes
// in shared memory, SIZE that of a thread's sums, and Work that of work.cuh.
template <class Activation>
struct Fused {
  static constexpr bool FUSED = true, BARE = false;

  // --8<-- [start:fetch]
  // One thread asks for the first BUFFERS boxes of R of a tile, while the
  // products still run. Before that it waits until the stores of the tile
  // before have read the boxes.
  template <int BUFFERS, class Work>
  static __device__ __forceinline__ void fetch(const Work& work, int top,
                                               int left, unsigned char* boxes,
                                               Barrier* loaded) {
    wait_for_reads<0>();
    for (int i = 0; i < BUFFERS; ++i)
      fetch_box(work, top, left + i * 64, boxes + i * (64 * 128), loaded + i);
  }

  template <class Work>
  static __device__ __forceinline__ void fetch_box(const Work& work, int top,
                                                   int left, unsigned char* box,
                                                   Barrier* loaded) {
    arrive_and_expect(loaded, 64 * 128);
    copy_box(box, *work.extra.map, top, left, loaded);
  }
  // --8<-- [end:fetch]

  // --8<-- [start:boxes]
  // Store sums box by box through the TMA. RESIDUAL: whether R is on its way
  // into the boxes; `phase` counts how often each box has been loaded.
  template <int BUFFERS, bool RESIDUAL, int SIZE, class Work>
  static __device__ __forceinline__ void store(
      float (&sum)[SIZE], const Bias<SIZE>& bias, const Work& work,
      const CUtensorMap& C, int top, int left, unsigned char* boxes,
      Barrier* loaded, int& phase, int consumer) {
    constexpr int COUNT = SIZE / 32;
    static_assert(COUNT % BUFFERS == 0, "each box is loaded as often");
    const bool first = threadIdx.x % 128 == 0;
#pragma unroll
    for (int which = 0; which < COUNT; ++which) {
      const int i = which % BUFFERS;
      unsigned char* const box = boxes + i * (64 * 128);
      activate<Activation>(sum, which, work, bias);
      if (RESIDUAL) {
        wait(loaded + i, phase & 1);
        add_box(sum, which, shared_address(box), work.beta);
      } else if (BUFFERS == 1) {
        if (first) wait_for_reads<0>();
        sync_consumer(consumer);
      }
      write_box(sum, which, shared_address(box));  // C lies where R lay
      fence_for_tma();
      if (!RESIDUAL && BUFFERS > 1 && first)  // the next box is free again
        wait_for_reads<BUFFERS == 1 ? 0 : BUFFERS - 2>();
      sync_consumer(consumer);
      if (first) {  // the other threads go on with the next box
        store_box(C, top, left + which * 64, box);
        close_stores();
        if (RESIDUAL && which + BUFFERS < COUNT) {  // the next R
          wait_for_reads<0>();
          fetch_box(work, top, left + (which + BUFFERS) * 64, box, loaded + i);
        }
      }
      if (i == BUFFERS - 1) ++phase;
    }
  }
  // --8<-- [end:boxes]

  // --8<-- [start:finish]
  // Store a consumer's sums in C. The bias has been loaded in pairs.
  template <int BUFFERS, int SIZE, class Work>
  static __device__ __forceinline__ void finish(
      float (&sum)[SIZE], Bias<SIZE>& bias, const Work& work,
      const CUtensorMap& C, int top, int left, unsigned char* boxes,
      Barrier* loaded, int& phase, int consumer) {
    if constexpr (sizeof(*work.C) == 2) {
      if (work.extra.map)
        return store<BUFFERS, true>(sum, bias, work, C, top, left, boxes,
                                    loaded, phase, consumer);
      if (work.boxes && work.beta == 0.0f)
        return store<BUFFERS, false>(sum, bias, work, C, top, left, boxes,
                                     loaded, phase, consumer);
    }
    // R comes by ordinary loads; C is stored in whichever way it can be.
    if (!work.boxes) bias.template load<false>(work, left);
#pragma unroll
    for (int which = 0; which < SIZE / 32; ++which)
      activate<Activation>(sum, which, work, bias);
    scale(sum, work.extra.residual, work.ldc, top, left, work.m, work.n, 1.0f,
          work.beta);
    if constexpr (sizeof(*work.C) == 2) {
      if (work.boxes)
        store_boxes<BUFFERS>(sum, C, top, left, boxes, consumer);
      else
        store_lines(sum, work.C, work.ldc, top, left, work.m, work.n, boxes);
    } else {
      store_sums(sum, work.C, work.ldc, top, left, work.m, work.n);
    }
  }
  // --8<-- [end:finish]
};
