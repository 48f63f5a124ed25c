// Rows of bf16 that begin at any address, which the TMA cannot read.
//
//   Around, load_around  two pieces of memory around eight elements
//   shift_of, shifted    these eight elements
//   Lines                64 lines of 64 elements, from a matrix into a box
#pragma once
#include <cuda_bf16.h>

// --8<-- [start:around]
// Eight elements of a row may lie in two pieces of 16 bytes that begin at
// multiples of 16. Both pieces are loaded whole, and the eight elements are
// shifted out of them.
struct Around {
  unsigned words[8];
};

// Bytes from the first of the two pieces to the eight elements.
__device__ __forceinline__ unsigned shift_of(const __nv_bfloat16* at) {
  return (unsigned)(size_t)at % 16;
}

// The pieces around at[0] to at[count - 1]; a count of 8 or more means 8
// elements, one of less than 1 none. Only what lies in [begin, end) may be
// read: if a piece reaches beyond it, the elements are read one by one.
__device__ __forceinline__ Around load_around(const __nv_bfloat16* at,
                                              int count,
                                              const __nv_bfloat16* begin,
                                              const __nv_bfloat16* end) {
  Around x = {};
  if (count <= 0) return x;
  const int before = shift_of(at) / 2, needed = before + min(count, 8);
  const __nv_bfloat16* const low = at - before;
  if (low >= begin && low + (needed > 8 ? 16 : 8) <= end) {
    const uint4 a = *reinterpret_cast<const uint4*>(low);
    const uint4 b =
        needed > 8 ? *reinterpret_cast<const uint4*>(low + 8) : uint4{};
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
  }
  const unsigned short* const raw =
      reinterpret_cast<const unsigned short*>(low);
#pragma unroll
  for (int i = 0; i < 16; ++i)
    if (i >= before && i < needed)
      x.words[i / 2] |= (unsigned)raw[i] << i % 2 * 16;
  return x;
}

// The eight elements, with zeros in place of those from number `count` on.
__device__ __forceinline__ uint4 shifted(const Around& x, unsigned shift,
                                         int count) {
  unsigned w[8], result[4];
#pragma unroll
  for (int i = 0; i < 8; ++i) w[i] = x.words[i];
  if (shift & 8) {
#pragma unroll
    for (int i = 0; i < 6; ++i) w[i] = w[i + 2];
  }
  if (shift & 4) {
#pragma unroll
    for (int i = 0; i < 5; ++i) w[i] = w[i + 1];
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    result[i] = __funnelshift_r(w[i], w[i + 1], (shift & 2) * 8);
    if (2 * i + 1 >= count) result[i] &= 2 * i < count ? 0xffff : 0;
  }
  return make_uint4(result[0], result[1], result[2], result[3]);
}
// --8<-- [end:around]

// --8<-- [start:lines]
// 64 lines of 64 elements on their way from a matrix to a box, in the registers
// of 128 threads. In load and store a thread has the same piece of every 16th
// line.
struct Lines {
  Around held[4];

  // Load the lines that begin in row `row` and column `column` of a matrix,
  // which has `rows` x `columns`; beyond it there are zeros.
  __device__ __forceinline__ void load(const __nv_bfloat16* matrix, int rows,
                                       int columns, int row, int column) {
    row += threadIdx.x / 8, column += threadIdx.x % 8 * 8;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      held[i] = load_around(matrix + (size_t)(row + 16 * i) * columns + column,
                            row + 16 * i < rows ? columns - column : 0, matrix,
                            matrix + (size_t)rows * columns);
  }

  // Store the lines in a box as the TMA does with its swizzle of 128 bytes. The
  // arguments are those of `load`.
  __device__ __forceinline__ void store(unsigned char* box,
                                        const __nv_bfloat16* matrix,
                                        int columns, int row,
                                        int column) const {
    const int line = threadIdx.x / 8, piece = threadIdx.x % 8;
    row += line, column += piece * 8;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      *reinterpret_cast<uint4*>(box + (line + 16 * i) * 128 +
                                (piece ^ line % 8) * 16) =
          shifted(held[i],
                  shift_of(matrix + (size_t)(row + 16 * i) * columns + column),
                  columns - column);
  }
};
// --8<-- [end:lines]
