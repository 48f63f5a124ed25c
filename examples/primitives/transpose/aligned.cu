// Rung 7: rows that begin anywhere. A block writes whole pieces of SPAN
// elements that begin at multiples of their size in memory, whatever the
// addresses of the rows are. Takes every pitch and every alignment.
//
// A block reads READ rows of the input and writes READ - SPAN elements of each
// of COLUMNS rows of the output. Where these begin differs from row to row, by
// less than SPAN. THREADS: of a block. SPAN: a power of 2; 32 bytes are one
// sector. One block for each tile, in the order of order.cuh.
//
// @instance transpose_aligned<float,128,64,512,8>
// @instance transpose_aligned<float,256,32,512,32>
// @instance transpose_aligned<unsigned short,128,64,512,16>
// @instance transpose_aligned<double,128,32,512,4>
#include "order.cuh"

// --8<-- [start:kernel]
template <class T, int READ, int COLUMNS, int THREADS, int SPAN>
__global__ void __launch_bounds__(THREADS)
    transpose_aligned(const T* __restrict__ in, T* __restrict__ out, int rows,
                      int columns, long long pitch_in, long long pitch_out,
                      int group) {
  constexpr int ROWS = READ - SPAN;
  constexpr int PAD = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
  constexpr int EACH = READ * COLUMNS / THREADS;
  static_assert(READ * COLUMNS % THREADS == 0, "threads share the tile evenly");
  static_assert(ROWS % SPAN == 0, "a tile begins where a piece begins");
  __shared__ T tile[READ][COLUMNS + PAD];
  const Tile at = tile_at(blockIdx.x, (rows + SPAN - 1 + ROWS - 1) / ROWS,
                          (columns + COLUMNS - 1) / COLUMNS, group);
  const int row = at.row * ROWS, column = at.column * COLUMNS;
  const int first = row - SPAN;  // of the rows that are read

  T kept[EACH];
#pragma unroll
  for (int k = 0; k < EACH; ++k) {
    const int y = first + (int)(threadIdx.x + k * THREADS) / COLUMNS;
    const int x = column + (int)(threadIdx.x + k * THREADS) % COLUMNS;
    if (0 <= y && y < rows && x < columns) kept[k] = in[y * pitch_in + x];
  }
#pragma unroll
  for (int k = 0; k < EACH; ++k)
    tile[(threadIdx.x + k * THREADS) / COLUMNS]
        [(threadIdx.x + k * THREADS) % COLUMNS] = kept[k];
  __syncthreads();

  // --8<-- [start:write]
  for (int y = threadIdx.x / 32; y < COLUMNS && column + y < columns;
       y += THREADS / 32) {
    T* const to = out + (column + y) * pitch_out;
    // So many elements after a border does this row of the output begin.
    const int late = (int)((size_t)to / sizeof(T) % SPAN);
#pragma unroll
    for (int x = threadIdx.x % 32; x < ROWS; x += 32) {
      const int r = row - late + x;
      if (0 <= r && r < rows) to[r] = tile[r - first][y];
    }
  }
  // --8<-- [end:write]
}
// --8<-- [end:kernel]
