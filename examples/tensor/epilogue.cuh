// Epilogues: what becomes of sums before they are rounded and stored.
//
//     C = scale activation(alpha A B + bias) + beta R
//
// bias has an element for each column; R, the residual, has the shape of C, and
// may be C itself. All of it is computed in fp32 and rounded once.
#pragma once
#include "activations.cuh"
#include "boxes.cuh"
#include "lines.cuh"
#include "mma.cuh"
#include "results.cuh"

// --8<-- [start:extra]
// What an epilogue reads besides alpha, beta and C.
template <class Out>
struct Extra {
  const __nv_bfloat16* bias;  // n of them, or null
  const Out* residual;        // read where beta is not 0
  const CUtensorMap* map;     // of the residual, boxes of 64 x 64; or null
  float scale;
};
// --8<-- [end:extra]

// Alpha and beta alone: `scale` of results.cuh.
struct Linear {
  static constexpr bool FUSED = false;
};

// --8<-- [start:columns]
// sum = scale activation(alpha sum + bias) for the 64 columns `which` of a
// thread's sums. A thread has two neighboring columns of every eight, each in
// two rows: so it loads a pair of the bias once for four sums.
template <class Activation, int SIZE, class Work>
__device__ __forceinline__ void activate(float (&sum)[SIZE], int which,
                                         const Work& work, int left) {
  const Activation activation;
  const float alpha = work.alpha, scale = work.extra.scale;
  const int first = left + 64 * which + threadIdx.x % 4 * 2;
  __nv_bfloat162 bias[8] = {};
  if (work.extra.bias) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {  // eight loads on their way at a time
      const int column = first + 8 * j;
      const __nv_bfloat16* const from = work.extra.bias + column;
      if (column + 1 < work.n)
        bias[j] = *reinterpret_cast<const __nv_bfloat162*>(from);
      else if (column < work.n)
        bias[j].x = *from;
    }
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float2 b = __bfloat1622float2(bias[j]);
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
// Add beta times a box of R, as the TMA has written it: the reverse of
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

template <class Activation>
struct Fused {
  static constexpr bool FUSED = true;
  // Of bf16 factors only.

  // --8<-- [start:fetch]
  // By one thread: ask for the first boxes of R of a tile, as many as there
  // are, while the products still run. Stores of the tile before may still
  // read the boxes.
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

  // --8<-- [start:finish]
  // A consumer's sums to C. `phase` counts how often each box has been loaded.
  template <int BUFFERS, int SIZE, class Work>
  static __device__ __forceinline__ void finish(float (&sum)[SIZE],
                                                const Work& work,
                                                const CUtensorMap& C, int top,
                                                int left, unsigned char* boxes,
                                                Barrier* loaded, int& phase,
                                                int consumer) {
    static_assert(SIZE / 32 % BUFFERS == 0, "each box is loaded as often");
    const bool first = threadIdx.x % 128 == 0;
    const float beta = work.beta;
    if constexpr (sizeof(*work.C) == 2) {
      if (work.extra.map) {
#pragma unroll
        for (int which = 0; which < SIZE / 32; ++which) {
          const int i = which % BUFFERS;
          unsigned char* const box = boxes + i * (64 * 128);
          activate<Activation>(sum, which, work, left);
          wait(loaded + i, phase & 1);
          add_box(sum, which, shared_address(box), beta);
          write_box(sum, which, shared_address(box));  // C lies where R lay
          fence_for_tma();
          sync_consumer(consumer);
          if (first) {
            store_box(C, top, left + which * 64, box);
            close_stores();
            if (which + BUFFERS < SIZE / 32) {  // the next R into the same box
              wait_for_reads<0>();
              fetch_box(work, top, left + (which + BUFFERS) * 64, box,
                        loaded + i);
            }
          }
          if (i == BUFFERS - 1) ++phase;
        }
        return;
      }
    }
    // R by ordinary loads, C by any means.
#pragma unroll
    for (int which = 0; which < SIZE / 32; ++which)
      activate<Activation>(sum, which, work, left);
    scale(sum, work.extra.residual, work.ldc, top, left, work.m, work.n, 1.0f,
          beta);
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
