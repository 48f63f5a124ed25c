// Rungs 2 to 4: a tile of 32 x 32 elements passes through shared memory, so
// that a warp reads a row and writes a row.
//
//   transpose_tiled     a row of the tile fills the 32 banks, and so a column
//                       lies in one bank
//   transpose_padded    one element more in each row of the tile
//   transpose_swizzled  each row of the tile is permuted
//
// Blocks of 32 x 32 threads, one block for each tile.
//
// @instance transpose_tiled<float>
// @instance transpose_padded<float>
// @instance transpose_swizzled<float>

// --8<-- [start:tiled]
template <class T>
__global__ void transpose_tiled(const T* __restrict__ in, T* __restrict__ out,
                                int rows, int columns, long long pitch_in,
                                long long pitch_out) {
  __shared__ T tile[32][32];
  const int x = threadIdx.x, y = threadIdx.y, tiles = (columns + 31) / 32;
  const int row = blockIdx.x / tiles * 32, column = blockIdx.x % tiles * 32;
  if (row + y < rows && column + x < columns)
    tile[y][x] = in[(row + y) * pitch_in + column + x];
  __syncthreads();
  if (column + y < columns && row + x < rows)
    out[(column + y) * pitch_out + row + x] = tile[x][y];
}
// --8<-- [end:tiled]

// --8<-- [start:padded]
template <class T>
__global__ void transpose_padded(const T* __restrict__ in, T* __restrict__ out,
                                 int rows, int columns, long long pitch_in,
                                 long long pitch_out) {
  __shared__ T tile[32][33];
  const int x = threadIdx.x, y = threadIdx.y, tiles = (columns + 31) / 32;
  const int row = blockIdx.x / tiles * 32, column = blockIdx.x % tiles * 32;
  if (row + y < rows && column + x < columns)
    tile[y][x] = in[(row + y) * pitch_in + column + x];
  __syncthreads();
  if (column + y < columns && row + x < rows)
    out[(column + y) * pitch_out + row + x] = tile[x][y];
}
// --8<-- [end:padded]

// --8<-- [start:swizzled]
template <class T>
__global__ void transpose_swizzled(const T* __restrict__ in,
                                   T* __restrict__ out, int rows, int columns,
                                   long long pitch_in, long long pitch_out) {
  __shared__ T tile[32][32];
  const int x = threadIdx.x, y = threadIdx.y, tiles = (columns + 31) / 32;
  const int row = blockIdx.x / tiles * 32, column = blockIdx.x % tiles * 32;
  if (row + y < rows && column + x < columns)
    tile[y][x ^ y] = in[(row + y) * pitch_in + column + x];
  __syncthreads();
  if (column + y < columns && row + x < rows)
    out[(column + y) * pitch_out + row + x] = tile[x][y ^ x];
}
// --8<-- [end:swizzled]
