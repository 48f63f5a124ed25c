// Which pieces of the product a block computes, and how blocks that share a
// tile add up their parts.
//
//   Piece, Schedule       the pieces of one worker, in order
//   raise, wait_for       a flag in global memory
//   leave_part, add_part  sums for another worker, and from another worker
#pragma once
#include "hopper/boxes.cuh"

// --8<-- [start:schedule]
// One piece of work: steps [begin, end) of the depth of a tile.
struct Piece {
  int tile, begin, end;
};

// Tiles 0 to whole - 1 are computed whole, in turn by all workers (a worker is
// a block, or the blocks of a cluster together). The tiles that are left after
// that may be fewer than workers. So the steps of all of them stand in one row,
// and each worker gets `share` of these steps. Where a share ends inside of a
// tile, the next worker goes on.
struct Schedule {
  int tile, stride, whole, steps;  // for tiles that are computed whole
  int at, stop;                    // steps in the row of the other tiles

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
// A flag in global memory. One thread of a consumer raises it, behind a barrier
// of the consumer; one thread of another consumer waits for it. This thread,
// and others behind a barrier with it, can then read what all threads of the
// first consumer have written before. Waiting sets the flag to 0 again.
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
// A consumer whose piece has not the first steps of a tile leaves its sums,
// 128 * SIZE words, for the consumer whose piece has them. A consumer leaves at
// most one piece, the first that it has of the row; the consumer that waits for
// it has come to its own last piece.
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

// Add what another consumer has left.
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
