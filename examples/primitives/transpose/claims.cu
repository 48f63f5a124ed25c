// Transposes as two sources write them, in our words, for squares of whole
// tiles. n: elements of a side.
//
//   notes_naive      a row is read, a column is written
//   notes_shared     through a tile of 64 x 64: a column of it lies in one bank
//   notes_padded     the same with rows of 65
//   notes_unrolled   the same, four loads before the first store
//   notes_printed    the first kernel that the source prints, loop by loop
//   notes_optimal    its second one: four loads, and rows of 64 again
//   by_columns       a tile of 32 x 32, with or without a barrier
//
// The first six: blocks of 64 x 16 threads, four elements for each.
//
// @instance by_columns<true>
// @instance by_columns<false>

// --8<-- [start:kernels]
extern "C" __global__ void notes_naive(const float* in, float* out, int n) {
  const int i = threadIdx.x + 64 * blockIdx.x;
  const int first = 4 * threadIdx.y + 64 * blockIdx.y;
  for (int j = first; j < first + 4; ++j)
    out[j + (size_t)n * i] = in[i + (size_t)n * j];
}

template <int WIDE>
__device__ __forceinline__ void one_by_one(const float* in, float* out, int n,
                                           float* tile) {
  const int x = threadIdx.x, first = 4 * threadIdx.y;
  const int column = 64 * blockIdx.x, row = 64 * blockIdx.y;
#pragma unroll 1
  for (int y = first; y < first + 4; ++y)
    tile[y + WIDE * x] = in[column + x + (size_t)n * (row + y)];
  __syncthreads();
#pragma unroll 1
  for (int y = first; y < first + 4; ++y)
    out[row + x + (size_t)n * (column + y)] = tile[x + WIDE * y];
}

template <int WIDE>
__device__ __forceinline__ void four_at_once(const float* in, float* out, int n,
                                             float* tile) {
  const int x = threadIdx.x, first = 4 * threadIdx.y;
  const int column = 64 * blockIdx.x, row = 64 * blockIdx.y;
  float kept[4];
#pragma unroll
  for (int k = 0; k < 4; ++k)
    kept[k] = in[column + x + (size_t)n * (row + first + k)];
#pragma unroll
  for (int k = 0; k < 4; ++k) tile[first + k + WIDE * x] = kept[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 4; ++k) kept[k] = tile[x + WIDE * (first + k)];
#pragma unroll
  for (int k = 0; k < 4; ++k)
    out[row + x + (size_t)n * (column + first + k)] = kept[k];
}

extern "C" __global__ void notes_shared(const float* in, float* out, int n) {
  __shared__ float tile[64 * 64];
  one_by_one<64>(in, out, n, tile);
}

extern "C" __global__ void notes_padded(const float* in, float* out, int n) {
  __shared__ float tile[65 * 64];
  one_by_one<65>(in, out, n, tile);
}

extern "C" __global__ void notes_unrolled(const float* in, float* out, int n) {
  __shared__ float tile[65 * 64];
  four_at_once<65>(in, out, n, tile);
}

extern "C" __global__ void notes_printed(const float* in, float* out, int n) {
  __shared__ float rows[64 * 64], tile[65 * 64];
  const int x = threadIdx.x, first = 4 * threadIdx.y;
  const int column = 64 * blockIdx.x, row = 64 * blockIdx.y;
  for (int y = first; y < first + 4; ++y) {
    rows[x + 64 * y] = in[column + x + (size_t)n * (row + y)];
    tile[y + 65 * x] = rows[x + 64 * y];
  }
  __syncthreads();
  for (int y = threadIdx.y; y < first + 4; ++y)
    out[row + x + (size_t)n * (column + y)] = tile[x + 65 * y];
}

extern "C" __global__ void notes_optimal(const float* in, float* out, int n) {
  __shared__ float tile[64 * 64];
  four_at_once<64>(in, out, n, tile);
}

// BARRIER: whether the threads wait for each other before they read the tile.
template <bool BARRIER>
__global__ void by_columns(const int* in, int* out, int n) {
  __shared__ int tile[32][32];
  const int x = threadIdx.x, y = threadIdx.y;
  const int column = 32 * blockIdx.x, row = 32 * blockIdx.y;
  tile[x][y] = in[column + x + (size_t)n * (row + y)];
  if (BARRIER) __syncthreads();
  out[row + x + (size_t)n * (column + y)] = tile[y][x];
}
// --8<-- [end:kernels]
