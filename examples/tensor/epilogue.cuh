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
  static constexpr bool FUSED = false, BARE = false;
};

// Not even these: alpha is 1, beta 0, every tile is computed whole, and the TMA
// stores C. A launch fetches its instructions from DRAM when nobody has run
// them for a while. Here those for rare cases do not lie between the others.
struct Bare {
  static constexpr bool FUSED = false, BARE = true;
};

// --8<-- [start:bias]
// The bias of a tile's columns. A thread has two neighboring columns of every
// eight, and so have the seven others of its warp with the same lane % 4. So
// each of the eight loads another pair of each 64 columns, and hands it on.
template <int SIZE>
struct Bias {
  unsigned pairs[SIZE / 32];

  template <class Work>
  __device__ __forceinline__ Bias(const Work& work, int left) {
    const int lane = threadIdx.x % 32, first = left + 2 * lane;
#pragma unroll
    for (int which = 0; which < SIZE / 32; ++which) {  // all on their way
      const int column = first + 64 * which;
      const __nv_bfloat16* const from = work.extra.bias + column;
      __nv_bfloat162 pair = {};
      if (work.extra.bias && column + 1 < work.n)
        pair = *reinterpret_cast<const __nv_bfloat162*>(from);
      else if (work.extra.bias && column < work.n)
        pair.x = *from;
      pairs[which] = reinterpret_cast<const unsigned&>(pair);
    }
  }

  // For the sums of columns 8 j to 8 j + 7 of the 64 columns `which`.
  __device__ __forceinline__ float2 of(int which, int j) const {
    const unsigned pair =
        __shfl_sync(~0u, pairs[which], 4 * j + threadIdx.x % 4);
    return make_float2(__uint_as_float(pair << 16),
                       __uint_as_float(pair & 0xffff0000));
  }
};
// --8<-- [end:bias]

// --8<-- [start:columns]
// sum = scale activation(alpha sum + bias) for the 64 columns `which`.
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
  static constexpr bool FUSED = true, BARE = false;
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
    const Bias<SIZE> bias(work, left);
    if constexpr (sizeof(*work.C) == 2) {
      const bool by_tma = work.extra.map;
      if (by_tma || (work.boxes && beta == 0.0f)) {
#pragma unroll
        for (int which = 0; which < SIZE / 32; ++which) {
          const int i = which % BUFFERS;
          unsigned char* const box = boxes + i * (64 * 128);
          activate<Activation>(sum, which, work, bias);
          if (by_tma) {
            wait(loaded + i, phase & 1);
            add_box(sum, which, shared_address(box), beta);
          } else {
            if (first) wait_for_reads<BUFFERS - 1>();  // the box is free again
            sync_consumer(consumer);
          }
          write_box(sum, which, shared_address(box));  // C lies where R lay
          fence_for_tma();
          sync_consumer(consumer);
          if (first) {  // while the others go on with the next box
            store_box(C, top, left + which * 64, box);
            close_stores();
            if (by_tma && which + BUFFERS < SIZE / 32) {  // the next R
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
      activate<Activation>(sum, which, work, bias);
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
