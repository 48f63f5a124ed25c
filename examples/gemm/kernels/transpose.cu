// Transposes a matrix: `to` becomes `from` transposed. A block turns a tile of
// 64 x 64 words in shared memory, so that neighboring threads read neighboring
// words, and write neighboring words. from: rows x columns, ld_from words from
// a row to the next; to: columns x rows, ld_to words from a row to the next.
// Grid: a block of 256 threads for each tile.
// --8<-- [start:kernel]
constexpr int SIDE = 64, LINES = 4;  // a tile's side; lines at a time

extern "C" __global__ void __launch_bounds__(SIDE* LINES)
    transpose(const float* __restrict__ from, int ld_from,
              float* __restrict__ to, int ld_to, int rows, int columns) {
  __shared__ float tile[SIDE][SIDE + 1];  // a column lies in all banks
  const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
  const int across = (columns + SIDE - 1) / SIDE;  // tiles side by side
  const int left = blockIdx.x % across * SIDE, top = blockIdx.x / across * SIDE;
#pragma unroll
  for (int i = y; i < SIDE; i += LINES)
    if (top + i < rows && left + x < columns)
      tile[i][x] = from[(size_t)(top + i) * ld_from + left + x];
  __syncthreads();
#pragma unroll
  for (int i = y; i < SIDE; i += LINES)
    if (left + i < columns && top + x < rows)
      to[(size_t)(left + i) * ld_to + top + x] = tile[x][i];
}
// --8<-- [end:kernel]
