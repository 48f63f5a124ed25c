// The bias of an epilogue: a number for each column.
#pragma once

// --8<-- [start:bias]
// The bias of a tile's columns. A thread has two neighboring columns of every
// eight, and so have the seven others of its warp with the same lane % 4. So
// each of the eight loads another pair of each 64 columns, and hands it on.
template <int SIZE>
struct Bias {
  unsigned pairs[SIZE / 32];

  // PAIRS: where the TMA stores C, n is even, and no pair is cut. Predicates
  // and no branch: no load waits for another, nor anybody for all of them.
  template <bool PAIRS, class Work>
  __device__ __forceinline__ void load(const Work& work, int left) {
    using Bits = unsigned short;
    const Bits* const from = reinterpret_cast<const Bits*>(work.extra.bias);
#pragma unroll
    for (int which = 0; which < SIZE / 32; ++which) {
      const int column = left + threadIdx.x % 32 * 2 + 64 * which;
      unsigned pair = 0, second = 0;
      if (PAIRS && from && work.boxes && column < work.n)
        pair = *reinterpret_cast<const unsigned*>(from + column);
      if (!PAIRS && from && column < work.n) pair = from[column];
      if (!PAIRS && from && column + 1 < work.n) second = from[column + 1];
      pairs[which] = pair | second << 16;
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
