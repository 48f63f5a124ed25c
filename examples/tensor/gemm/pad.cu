// Matrices whose rows do not begin at multiples of 16 bytes, as the TMA needs
// them, are copied into others whose rows do.
//
//   pad       copies one matrix
//   pad_rows  the kernel: copies both factors of a product
//
// requires: sm_80
#include "unaligned.cuh"

// Copy rows x columns of bf16, row after row, into rows that are as long as the
// next multiple of 8; elements beyond `columns` become zero. The pieces of 16
// bytes are numbered through all rows. A thread copies the pieces `at`, `at` +
// `step`, `at` + 2 * `step` and so on; `at` is less than `step`. The result is
// how far beyond the last piece this goes on; it is less than `step`, too.
// --8<-- [start:kernel]
__device__ __forceinline__ unsigned pad(const __nv_bfloat16* from, uint4* to,
                                        int rows, int columns, unsigned at,
                                        unsigned step) {
  const unsigned pieces = (columns + 7) / 8;
  const size_t all = (size_t)rows * pieces;
  if (at >= all) return at - (unsigned)all;
  size_t i = at, row = at / pieces;
  unsigned piece = at % pieces;
  for (; i < all; i += step) {
    const __nv_bfloat16* const first = from + row * columns + piece * 8;
    const int count = columns - (int)piece * 8;
    to[i] =
        shifted(load_around(first, count, from, from + (size_t)rows * columns),
                shift_of(first), count);
    row += step / pieces, piece += step % pieces;
    if (piece >= pieces) piece -= pieces, ++row;
  }
  return i - all;
}

// Copy both factors of a product; a factor that needs no copy has no rows here.
// Grid: any number of blocks of 256.
extern "C" __global__ void pad_rows(const __nv_bfloat16* A, uint4* to_a,
                                    int rows_a, int columns_a,
                                    const __nv_bfloat16* B, uint4* to_b,
                                    int rows_b, int columns_b) {
  const unsigned step = gridDim.x * blockDim.x;
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  pad(B, to_b, rows_b, columns_b, pad(A, to_a, rows_a, columns_a, at, step),
      step);
}
// --8<-- [end:kernel]
