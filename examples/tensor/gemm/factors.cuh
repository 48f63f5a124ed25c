// The two ways in which a factor may lie in memory, from there to wgmma.
#pragma once
#include "ptx/cluster.cuh"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"
#include "unaligned.cuh"

constexpr int BK = 64;         // steps of depth in a stage
constexpr int BOX = 64 * 128;  // bytes of 64 lines of a box

// --8<-- [start:factor]
// EXTENT rows of A, or columns of B, and BK steps of depth: what a stage holds
// of a factor. ALONG_K: its lines in memory run along the depth (A row-major; B
// transposed), and a box has EXTENT lines of 64 steps. Else they run across it
// (B row-major; A transposed), and there is a box of 64 lines, one for each
// step, for every 64 rows or columns.
//
// PARTS blocks of a cluster share the factor. Each copies one part of it to all
// of them; the boxes of its map are EXTENT / PARTS x 64, or 64 x 64.
template <bool ALONG_K, int EXTENT, int PARTS>
struct Factor {
  static constexpr int BYTES = EXTENT * 128, BOXES = EXTENT / 64 / PARTS;
  static_assert(EXTENT % (64 * PARTS) == 0, "whole boxes");

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
// The same without the TMA, for rows that begin anywhere: 128 threads carry the
// boxes through their registers.
template <bool ALONG_K, int EXTENT>
struct PlainFactor {
  const __nv_bfloat16* matrix;
  int rows, columns;  // as it lies
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
// sum (+)= the product of 64 rows of A and of the columns of B that the sums
// have, one stage deep. Started and closed as a group, not waited for.
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
