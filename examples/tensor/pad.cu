// A matrix whose rows do not begin at multiples of 16 bytes, as the TMA needs
// them, is copied into one whose rows do.
// requires: sm_80
#include <cuda_bf16.h>

// rows x columns of bf16, ld_from and ld_to elements from a row to the next;
// ld_to is a multiple of 8, and what it has beyond `columns` becomes zero.
// A thread makes 16 bytes. Grid: any number of blocks of any number of threads.
// --8<-- [start:kernel]
extern "C" __global__ void pad_rows(const unsigned short* __restrict__ from,
                                    uint4* __restrict__ to, int rows,
                                    int columns, int ld_from, int ld_to) {
  const size_t pieces = (size_t)rows * (ld_to / 8);
  const size_t step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < pieces;
       i += step) {
    const int row = i / (ld_to / 8), column = i % (ld_to / 8) * 8;
    const unsigned short* const x = from + (size_t)row * ld_from + column;
    unsigned words[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const unsigned low = column + 2 * w < columns ? x[2 * w] : 0;
      const unsigned high = column + 2 * w + 1 < columns ? x[2 * w + 1] : 0;
      words[w] = low | high << 16;
    }
    to[i] = make_uint4(words[0], words[1], words[2], words[3]);
  }
}
// --8<-- [end:kernel]
