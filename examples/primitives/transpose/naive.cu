// Rung 1: one element per thread, straight from memory to memory.
//
//   transpose_naive          a warp reads a row and writes a column
//   transpose_naive_columns  a warp reads a column and writes a row
//
// in: rows x columns elements, `pitch_in` elements from one row to the next;
// out: columns x rows, with `pitch_out`. Blocks of 32 x 8 threads, one block
// for each tile of 32 columns and 8 rows.
//
// @instance transpose_naive<float>
// @instance transpose_naive_columns<float>

// --8<-- [start:kernel]
template <class T>
__global__ void transpose_naive(const T* __restrict__ in, T* __restrict__ out,
                                int rows, int columns, long long pitch_in,
                                long long pitch_out) {
  const int tiles = (columns + 31) / 32;  // side by side
  const int row = blockIdx.x / tiles * 8 + threadIdx.y;
  const int column = blockIdx.x % tiles * 32 + threadIdx.x;
  if (row < rows && column < columns)
    out[column * pitch_out + row] = in[row * pitch_in + column];
}
// --8<-- [end:kernel]

// The same the other way round: 32 rows and 8 columns.
template <class T>
__global__ void transpose_naive_columns(const T* __restrict__ in,
                                        T* __restrict__ out, int rows,
                                        int columns, long long pitch_in,
                                        long long pitch_out) {
  const int tiles = (rows + 31) / 32;
  const int column = blockIdx.x / tiles * 8 + threadIdx.y;
  const int row = blockIdx.x % tiles * 32 + threadIdx.x;
  if (row < rows && column < columns)
    out[column * pitch_out + row] = in[row * pitch_in + column];
}
