// From sums to rows of C that begin anywhere, which the TMA cannot store.
#pragma once
#include "hopper/boxes.cuh"

// --8<-- [start:lines]
// Store a warpgroup's 64 rows of sums, rounded to Out, through a box in shared
// memory, 64 columns at a time. Every warp writes 16 lines of the box and reads
// the same 16 lines, so it waits for no other warp. It stores a line as a
// whole, 128 bytes side by side, while registers hold 16 bytes of each of eight
// rows. If a row begins in the middle of a word of memory, a lane takes the
// first half of each word from the lane before. SIZE: sums of a thread, half as
// many as columns.
template <class Out, int SIZE>
__device__ __forceinline__ void store_lines(const float (&sum)[SIZE], Out* C,
                                            int ldc, int top, int left, int m,
                                            int n, unsigned char* box) {
  const int lane = threadIdx.x % 32, first = threadIdx.x % 128 / 32 * 16;
  const int lines = min(16, m - top - first);
#pragma unroll
  for (int which = 0; which < SIZE / 32; ++which) {
    const int columns = min(64, n - left - which * 64);
    if (columns <= 0) break;
    __syncwarp();  // all lanes have read what is overwritten now
    write_box<Out>(sum, which, shared_address(box));
    __syncwarp();
#pragma unroll 4
    for (int i = 0; i < lines; ++i) {
      const int line = first + i;
      const unsigned word = *reinterpret_cast<const unsigned*>(
          box + line * 128 + ((lane / 4 ^ line % 8) * 16 + lane % 4 * 4));
      const unsigned before = __shfl_up_sync(~0u, word, 1);
      Out* const to = C + (size_t)(top + line) * ldc + left + which * 64;
      unsigned short* const half = reinterpret_cast<unsigned short*>(to);
      const int odd = (size_t)to / 2 % 2, column = 2 * lane - odd;
      if (column >= 0 && column + 1 < columns)
        *reinterpret_cast<unsigned*>(to + column) =
            odd ? __funnelshift_r(before, word, 16) : word;
      else if (column < 0)
        half[0] = word & 0xffff;
      else if (column < columns)
        half[column] = odd ? before >> 16 : word & 0xffff;
      if (odd && lane == 31 && columns == 64) half[63] = word >> 16;
    }
  }
}
// --8<-- [end:lines]
