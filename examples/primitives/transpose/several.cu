// Rung 5: several elements per thread, all of them read before the first is
// used; and tiles of any shape. Takes every pitch and every alignment.
//
// ROWS, COLUMNS: of the tile, powers of 2. THREADS: of a block. One block for
// each tile, in the order of order.cuh.
//
// @instance transpose_several<float,32,32,256>
// @instance transpose_several<float,64,64,512>
// @instance transpose_several<unsigned short,64,64,512>
#include "order.cuh"

// --8<-- [start:kernel]
template <class T, int ROWS, int COLUMNS, int THREADS>
__global__ void __launch_bounds__(THREADS)
    transpose_several(const T* __restrict__ in, T* __restrict__ out, int rows,
                      int columns, long long pitch_in, long long pitch_out,
                      int group) {
  // So that a column of the tile begins each row one bank further.
  constexpr int PAD = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
  constexpr int EACH = ROWS * COLUMNS / THREADS;
  static_assert(ROWS * COLUMNS % THREADS == 0, "threads share the tile evenly");
  __shared__ T tile[ROWS][COLUMNS + PAD];
  const Tile at = tile_at(blockIdx.x, (rows + ROWS - 1) / ROWS,
                          (columns + COLUMNS - 1) / COLUMNS, group);
  const int row = at.row * ROWS, column = at.column * COLUMNS;
  in += row * pitch_in + column;
  out += column * pitch_out + row;
  const int height = rows - row, width = columns - column;  // what is left

  // --8<-- [start:read]
  T kept[EACH];
#pragma unroll
  for (int k = 0; k < EACH; ++k) {
    const int y = (threadIdx.x + k * THREADS) / COLUMNS;
    const int x = (threadIdx.x + k * THREADS) % COLUMNS;
    if (y < height && x < width) kept[k] = in[y * pitch_in + x];
  }
#pragma unroll
  for (int k = 0; k < EACH; ++k) {
    const int y = (threadIdx.x + k * THREADS) / COLUMNS;
    const int x = (threadIdx.x + k * THREADS) % COLUMNS;
    tile[y][x] = kept[k];
  }
  // --8<-- [end:read]
  __syncthreads();
#pragma unroll
  for (int k = 0; k < EACH; ++k) {
    const int y = (threadIdx.x + k * THREADS) / ROWS;
    const int x = (threadIdx.x + k * THREADS) % ROWS;
    if (y < width && x < height) out[y * pitch_out + x] = tile[x][y];
  }
}
// --8<-- [end:kernel]
