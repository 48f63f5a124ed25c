// How a thread copies its share of a stage with few instructions: addresses and
// bounds are computed once, and then only advanced.
#pragma once
#include "warps.cuh"

// --8<-- [start:copies]
// Copies the same stage as `copy_stage`, by COUNT copies of each thread, in any
// number of portions: call `start` for the copies 0, 1, ... in this order, then
// `advance`. Beyond k zeros arrive, and nothing is read.
//
//   BM, BN   rows of A and columns of B in a stage: multiples of 64
//   THREADS  threads of the block: a multiple of 64
template <int BM, int BN, int THREADS>
struct Copies {
  static constexpr int LINES = THREADS / 8;  // lines that are copied at a time
  static constexpr int OF_A = BM / LINES, OF_B = BK / LINES * (BN / 64);
  static constexpr int COUNT = OF_A + OF_B;
  static_assert(LINES % 8 == 0, "the piece's place is the same each time");

  const __nv_bfloat16 *a, *b, *from;
  size_t next_a, next_b, stage_b;  // elements to the next lines, of B's stage
  int rows, columns;               // of A and of B from here to their edges
  int depth_a, depth_b;            // what is left of k
  unsigned to;

  __device__ __forceinline__ Copies(const __nv_bfloat16* A,
                                    const __nv_bfloat16* B, int m, int n, int k,
                                    int top, int left) {
    const int line = threadIdx.x / 8, piece = threadIdx.x % 8;
    a = A + (size_t)(top + line) * k + piece * 8;
    b = B + (size_t)line * n + left + piece * 8;
    next_a = (size_t)LINES * k, next_b = (size_t)LINES * n;
    stage_b = (size_t)BK * n;
    rows = m - top - line, columns = n - left - piece * 8;
    depth_a = k - piece * 8, depth_b = k - line;
    to = place(line, piece);
  }

  // The compiler knows i if the loop around this is unrolled.
  __device__ __forceinline__ void start(unsigned stage, int i) {
    if (i < OF_A) {
      if (i == 0) from = a;
      copy16(stage + to + i * LINES * 128, from,
             depth_a > 0 && i * LINES < rows ? 16 : 0);
      from += next_a;
    } else {
      const int box = (i - OF_A) % (BN / 64), line = (i - OF_A) / (BN / 64);
      if (i == OF_A) from = b;
      copy16(stage + BM * 128 + box * (BK * 128) + to + line * LINES * 128,
             from + box * 64,
             line * LINES < depth_b && box * 64 < columns ? 16 : 0);
      if (box == BN / 64 - 1) from += next_b;
    }
  }

  __device__ __forceinline__ void advance() {
    a += BK, b += stage_b, depth_a -= BK, depth_b -= BK;
  }
};
// --8<-- [end:copies]
