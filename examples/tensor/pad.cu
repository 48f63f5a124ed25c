// Matrices whose rows do not begin at multiples of 16 bytes, as the TMA needs
// them, are copied into others whose rows do.
// requires: sm_80
#include "unaligned.cuh"

// rows x columns of bf16, row after row, into rows that are as long as the next
// multiple of 8; what they have beyond `columns` becomes zero.
// --8<-- [start:kernel]
__device__ __forceinline__ void pad(const __nv_bfloat16* from, uint4* to,
                                    int rows, int columns) {
  const int pieces = (columns + 7) / 8;
  for (int row = blockIdx.x * blockDim.y + threadIdx.y; row < rows;
       row += gridDim.x * blockDim.y)
    for (int piece = threadIdx.x; piece < pieces; piece += blockDim.x) {
      const __nv_bfloat16* const at = from + (size_t)row * columns + piece * 8;
      const int count = columns - piece * 8;
      to[(size_t)row * pieces + piece] =
          shifted(load_around(at, count, from, from + (size_t)rows * columns),
                  shift_of(at), count);
    }
}

// Both factors of a product; one that needs no copy has no rows here. Grid: any
// number of blocks of 32 x 8.
extern "C" __global__ void pad_rows(const __nv_bfloat16* A, uint4* to_a,
                                    int rows_a, int columns_a,
                                    const __nv_bfloat16* B, uint4* to_b,
                                    int rows_b, int columns_b) {
  pad(A, to_a, rows_a, columns_a);
  pad(B, to_b, rows_b, columns_b);
}
// --8<-- [end:kernel]
