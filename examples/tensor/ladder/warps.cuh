// Tiles in shared memory, and the part of a tile that one warp computes with
// mma.sync.
//
//   place                   where a piece of 16 bytes stands in a box
//   copy_lines, copy_stage  copies of a box, and of a whole stage
//   Fragments               factors of a warp, and its products
//   store_warp              sums of a warp to C
#pragma once
#include "ptx/mma.cuh"

constexpr int BK = 64;  // steps of depth in a stage

// --8<-- [start:swizzle]
// Tiles lie in boxes: a line has 64 bf16, 128 bytes, all 32 banks. Piece c of
// 16 bytes of line r stands at piece c ^ r % 8. So eight pieces of a line lie
// in all banks, and so do the eight pieces c of eight lines below each other.
__device__ __forceinline__ unsigned place(unsigned line, unsigned piece) {
  return line * 128 + (piece ^ line % 8) * 16;
}
// --8<-- [end:swizzle]

// --8<-- [start:copy-box]
// Start to copy LINES lines of 64 elements from a matrix, rows x columns, into
// a box; elements beyond the matrix arrive as zeros. `columns` is a multiple of
// 8. THREADS: threads of the block, a multiple of 64.
template <int LINES, int THREADS>
__device__ __forceinline__ void copy_lines(unsigned box,
                                           const __nv_bfloat16* matrix,
                                           int rows, int columns, int row,
                                           int column) {
  const unsigned line = threadIdx.x / 8, piece = threadIdx.x % 8;
  const int c = column + piece * 8, room = c < columns ? rows - row - line : 0;
  const __nv_bfloat16* from = matrix + (size_t)(row + line) * columns + c;
  unsigned to = box + place(line, piece);
  static_assert(THREADS / 8 % 8 == 0,
                "the piece's place is the same each time");
#pragma unroll
  for (int i = 0; i < LINES; i += THREADS / 8)
    copy16(to + i * 128, i < room ? from + (size_t)i * columns : matrix,
           i < room ? 16 : 0);
}

// Start to copy a stage: BM x 64 of A as one box, 64 x BN of B as BN / 64 boxes
// behind it. start: the first step of depth.
template <int BM, int BN, int THREADS>
__device__ __forceinline__ void copy_stage(unsigned to, const __nv_bfloat16* A,
                                           const __nv_bfloat16* B, int m, int n,
                                           int k, int top, int left,
                                           int start) {
  copy_lines<BM, THREADS>(to, A, m, k, top, start);
#pragma unroll
  for (int box = 0; box < BN / 64; ++box)
    copy_lines<BK, THREADS>(to + BM * 128 + box * (BK * 128), B, k, n, start,
                            left + box * 64);
}
// --8<-- [end:copy-box]

// --8<-- [start:warp]
// What a warp that computes WM x WN of a tile holds of A and B for 16 steps of
// depth, and how it multiplies that. WM and WN are multiples of 16.
template <int WM, int WN>
struct Fragments {
  unsigned a[WM / 16][4], b[WN / 16][4];

  // row, column: where the warp's part begins in the tile. step: which 16 steps
  // of the stage, 0 to 3.
  __device__ __forceinline__ void load(unsigned tile_a, unsigned tile_b,
                                       int row, int column, int step) {
    const unsigned lane = threadIdx.x % 32, half = lane / 16;
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
      ldmatrix(a[i], tile_a + place(row + i * 16 + lane % 16, step * 2 + half));
#pragma unroll
    for (int j = 0; j < WN / 16; ++j) {
      const int c = column + j * 16;
      ldmatrix_turned(b[j],
                      tile_b + c / 64 * (BK * 128) +
                          place(step * 16 + lane % 16, c % 64 / 8 + half));
    }
  }

  __device__ __forceinline__ void multiply(
      float (&sum)[WM / 16][WN / 8][4]) const {
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
      for (int j = 0; j < WN / 8; ++j)
        mma(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
  }
};
// --8<-- [end:warp]

// --8<-- [start:store]
// Write a warp's sums to C as bf16, two columns at a time: MT x NT matrices of
// 16 x 8. n is even.
template <int MT, int NT>
__device__ __forceinline__ void store_warp(const float (&sum)[MT][NT][4],
                                           __nv_bfloat16* C, int row,
                                           int column, int m, int n) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = row + i * 16 + half * 8 + lane / 4;
      if (r >= m) continue;
#pragma unroll
      for (int j = 0; j < NT; ++j) {
        const int c = column + j * 8 + lane % 4 * 2;
        if (c < n)
          *reinterpret_cast<__nv_bfloat162*>(C + (size_t)r * n + c) =
              __floats2bfloat162_rn(sum[i][j][2 * half],
                                    sum[i][j][2 * half + 1]);
      }
    }
}
// --8<-- [end:store]
