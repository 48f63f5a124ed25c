// From a factor in memory, which may lie in two ways, to wgmma.
//
//   Factor          what a stage holds of a factor, copied by the TMA
//   PlainFactor     the same, copied by threads, for rows that begin anywhere
//   multiply_stage  the products of a stage: BK steps of depth
#pragma once
#include "ptx/cluster.cuh"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"
#include "unaligned.cuh"

constexpr int BK = 64;         // steps of depth in a stage
constexpr int BOX = 64 * 128;  // bytes of a box of 64 lines

// --8<-- [start:factor]
// What a stage holds of a factor: EXTENT rows of A, or columns of B, and BK
// steps of depth. ALONG_K: its lines in memory run along the depth (A
// row-major; B transposed), and a box has EXTENT lines of 64 steps. Otherwise
// lines run across the depth (B row-major; A transposed), and for every 64 rows
// or columns there is a box of 64 lines, one for each step.
//
// PARTS blocks of a cluster share the factor. Each copies one part of it to all
// of them; the boxes of its map are EXTENT / PARTS x 64, or 64 x 64. EXTENT is
// a multiple of 64 * PARTS.
template <bool ALONG_K, int EXTENT, int PARTS>
struct Factor {
  static constexpr int BYTES = EXTENT * 128, BOXES = EXTENT / 64 / PARTS;
  static_assert(EXTENT % (64 * PARTS) == 0, "whole boxes");

  // Start to copy this block's part. first: row or column where the factor's
  // part of the tile begins; depth: the first step.
  static __device__ __forceinline__ void copy(unsigned char* to,
                                              const CUtensorMap& map, int first,
                                              int depth, Barrier* barrier,
                                              int part) {
    if constexpr (ALONG_K) {
      const int line = part * (EXTENT / PARTS);
      copy_one(to + line * 128, map, first + line, depth, barrier);
    } else {
#pragma unroll
      for (int i = 0; i < BOXES; ++i) {
        const int box = part * BOXES + i;
        copy_one(to + box * BOX, map, depth, first + box * 64, barrier);
      }
    }
  }

  static __device__ __forceinline__ void copy_one(unsigned char* to,
                                                  const CUtensorMap& map,
                                                  int row, int column,
                                                  Barrier* barrier) {
    if constexpr (PARTS == 1)
      copy_box(to, map, row, column, barrier);
    else
      copy_box_to_all(to, map, row, column, barrier, (1 << PARTS) - 1);
  }
};
// --8<-- [end:factor]

// --8<-- [start:plain]
// The same without the TMA, for rows that begin anywhere: 128 threads load the
// boxes into their registers, and store them in shared memory.
template <bool ALONG_K, int EXTENT>
struct PlainFactor {
  const __nv_bfloat16* matrix;
  int rows, columns;  // of the matrix as it lies
  Lines lines[EXTENT / 64];

  __device__ __forceinline__ void load(int first, int depth) {
#pragma unroll
    for (int i = 0; i < EXTENT / 64; ++i)
      lines[i].load(matrix, rows, columns, row(first, depth, i),
                    column(first, depth, i));
  }

  __device__ __forceinline__ void store(unsigned char* to, int first,
                                        int depth) const {
#pragma unroll
    for (int i = 0; i < EXTENT / 64; ++i)
      lines[i].store(to + i * BOX, matrix, columns, row(first, depth, i),
                     column(first, depth, i));
  }

  static __device__ __forceinline__ int row(int first, int depth, int i) {
    return ALONG_K ? first + i * 64 : depth;
  }
  static __device__ __forceinline__ int column(int first, int depth, int i) {
    return ALONG_K ? depth : first + i * 64;
  }
};
// --8<-- [end:plain]

// --8<-- [start:multiply]
// sum (+)= the product of 64 rows of A and 2 * SIZE columns of B, one stage
// deep. a, b: where they begin in shared memory; A_ALONG, B_ALONG: whether they
// lie along the depth; In: bf16 or fp16. The products are started and closed as
// a group; nothing waits for them here.
template <bool A_ALONG, bool B_ALONG, class In = __nv_bfloat16, int SIZE>
__device__ __forceinline__ void multiply_stage(float (&sum)[SIZE], unsigned a,
                                               unsigned b, bool add) {
  const Descriptor of_a(a, BOX), of_b(b, BOX);
  fence_sums();
#pragma unroll
  for (int i = 0; i < BK / 16; ++i)
    wgmma<A_ALONG, B_ALONG, In>(sum, of_a.at(i * NEXT_DEPTH<A_ALONG>),
                                of_b.at(i * NEXT_DEPTH<B_ALONG>), add || i > 0);
  close_products();
}
// --8<-- [end:multiply]
