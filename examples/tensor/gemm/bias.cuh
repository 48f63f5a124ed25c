// The bias of an epilogue: a number for each column.
#pragma once

// --8<-- [start:bias]
// The bias of a tile's columns. A thread has sums of two neighboring columns of
// every eight, and the seven other lanes with the same lane % 4 have sums of
// the same columns. So each lane loads another pair of each 64 columns, and
// hands it to the lanes that need it. SIZE: sums of a thread, half as many as
// columns.
template <int SIZE>
struct Bias {
  unsigned pairs[SIZE / 32];

  // PAIRS: whether to load two columns at a time, which is done only where the
  // TMA stores C: there n is even, and no pair is cut. There are predicates and
  // no branches, so that no load waits for another one, and no thread for all
  // of them.
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

  // This thread's two of columns 8 j to 8 j + 7 of the 64 columns number
  // `which`.
  __device__ __forceinline__ float2 of(int which, int j) const {
    const unsigned pair =
        __shfl_sync(~0u, pairs[which], 4 * j + threadIdx.x % 4);
    return make_float2(__uint_as_float(pair << 16),
                       __uint_as_float(pair & 0xffff0000));
  }
};
// --8<-- [end:bias]
