// Which pieces of the product a block computes, and how blocks that share a
// tile add up their parts.
#pragma once
#include "hopper/boxes.cuh"

// --8<-- [start:schedule]
// One piece of work: steps [begin, end) of the depth of a tile.
struct Piece {
  int tile, begin, end;
};

// Tiles 0 to whole - 1 are computed whole, in turn by all workers (a block, or
// the blocks of a cluster together). What is left after that may be less than a
// tile for each worker, and more than none. So the steps of all tiles that are
// left stand in one row, and each worker gets `share` of them. Where a share
// ends inside of a tile, the next worker goes on.
struct Schedule {
  int tile, stride, whole, steps;  // tiles of the first kind
  int at, stop;                    // and steps in the row of what is left

  __device__ __forceinline__ Schedule(int worker, int workers, int tiles,
                                      int whole, int steps, int share)
      : tile(worker), stride(workers), whole(whole), steps(steps) {
    const int all = (tiles - whole) * steps;
    at = min(worker * share, all);
    stop = min(at + share, all);
  }

  // The next piece, if there is one.
  __device__ __forceinline__ bool next(Piece& piece) {
    if (tile < whole) {
      piece = {tile, 0, steps};
      tile += stride;
      return true;
    }
    if (at >= stop) return false;
    const int begin = at % steps, end = min(begin + stop - at, steps);
    piece = {whole + at / steps, begin, end};
    at += end - begin;
    return true;
  }
};
// --8<-- [end:schedule]

// --8<-- [start:flags]
// A flag in global memory: what the threads of a consumer wrote before a
// barrier of theirs, the one that has waited for the flag, and others after a
// barrier with it, can read. Waiting leaves the flag as it was before: 0.
__device__ __forceinline__ void raise(unsigned* flag) {
  asm volatile(
      "fence.acq_rel.gpu;\n"
      "st.release.gpu.global.u32 [%0], 1;" ::"l"(__cvta_generic_to_global(flag))
      : "memory");
}

__device__ __forceinline__ void wait_for(unsigned* flag) {
  unsigned raised;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                 : "=r"(raised)
                 : "l"(__cvta_generic_to_global(flag))
                 : "memory");
  } while (!raised);
  *flag = 0;
}
// --8<-- [end:flags]

// --8<-- [start:parts]
// A consumer that has not the first steps of a tile leaves its sums, 128 times
// SIZE words, for the one that has. It has at most one such piece, its first of
// the row; the one that waits for it has come to its last.
template <int SIZE>
__device__ __forceinline__ void leave_part(const float (&sum)[SIZE],
                                           float* part, unsigned* flag,
                                           int consumer) {
  float4* const to = reinterpret_cast<float4*>(part) + threadIdx.x % 128;
#pragma unroll
  for (int i = 0; i < SIZE / 4; ++i)
    __stcg(to + i * 128, make_float4(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2],
                                     sum[4 * i + 3]));
  sync_consumer(consumer);
  if (threadIdx.x % 128 == 0) raise(flag);
}

template <int SIZE>
__device__ __forceinline__ void add_part(float (&sum)[SIZE], const float* part,
                                         unsigned* flag, int consumer) {
  if (threadIdx.x % 128 == 0) wait_for(flag);
  sync_consumer(consumer);
  const float4* const from =
      reinterpret_cast<const float4*>(part) + threadIdx.x % 128;
#pragma unroll
  for (int i = 0; i < SIZE / 4; ++i) {
    const float4 four = __ldcg(from + i * 128);
    sum[4 * i] += four.x, sum[4 * i + 1] += four.y;
    sum[4 * i + 2] += four.z, sum[4 * i + 3] += four.w;
  }
}
// --8<-- [end:parts]
