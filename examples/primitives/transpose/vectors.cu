// Rung 6: 16 bytes per access, in memory and in shared memory. A thread turns
// squares of 4 x 4 elements of 4 bytes (2 x 2 of 8 bytes, 8 x 8 of 2 bytes) in
// its registers, which costs nothing: registers only get other names.
//
// in and out are aligned to 16 bytes, and both pitches are multiples of 16
// bytes; rows and columns are any numbers.
//
// ROWS, COLUMNS: of the tile. A row of the tile, and a column, fill 128 bytes
// or a multiple. THREADS: of a block. HINT: 0 none; 1: nothing will be read
// again, so that caches need not keep it; 2: only what is read; 3: only what
// is written.
//
// expect: spills (four words of 128 x 128 for float on sm_86 and sm_89)
// @instance transpose_vectors<float,64,64,256,0>
// @instance transpose_vectors<float,128,128,512,0>
// @instance transpose_vectors<unsigned short,64,64,64,0>
// @instance transpose_vectors<double,32,32,256,0>
#include "order.cuh"

template <class T>
struct alignas(16) Vector {
  T at[16 / sizeof(T)];
};

template <class T, int HINT>
__device__ __forceinline__ Vector<T> load(const T* from) {
  const uint4* const at = reinterpret_cast<const uint4*>(from);
  const uint4 raw = HINT == 1 || HINT == 2 ? __ldcs(at) : *at;
  return reinterpret_cast<const Vector<T>&>(raw);
}

template <class T, int HINT>
__device__ __forceinline__ void store(T* to, const Vector<T>& v) {
  uint4* const at = reinterpret_cast<uint4*>(to);
  const uint4& raw = reinterpret_cast<const uint4&>(v);
  if (HINT == 1 || HINT == 3)
    __stcs(at, raw);
  else
    *at = raw;
}

// --8<-- [start:kernel]
template <class T, int ROWS, int COLUMNS, int THREADS, int HINT>
__global__ void __launch_bounds__(THREADS)
    transpose_vectors(const T* __restrict__ in, T* __restrict__ out, int rows,
                      int columns, long long pitch_in, long long pitch_out,
                      int group) {
  constexpr int PER = 16 / sizeof(T);  // elements of a vector
  constexpr int WIDE = COLUMNS / PER, HIGH = ROWS / PER;  // squares of the tile
  constexpr int EACH = WIDE * HIGH / THREADS;
  static_assert(WIDE * HIGH % THREADS == 0, "threads share the tile evenly");
  static_assert(WIDE % 8 == 0 && HIGH % 8 == 0, "the banks want 128 bytes");
  // The tile is turned already. A vector lies where its place says, but for
  // three bits, so that eight threads store to, and load from, all banks.
  extern __shared__ uint4 bytes[];  // of the tile
  auto* const tile = reinterpret_cast<Vector<T>(*)[HIGH]>(bytes);
  const Tile at = tile_at(blockIdx.x, (rows + ROWS - 1) / ROWS,
                          (columns + COLUMNS - 1) / COLUMNS, group);
  const int row = at.row * ROWS, column = at.column * COLUMNS;
  in += row * pitch_in + column;
  out += column * pitch_out + row;
  const int height = rows - row, width = columns - column;  // what is left

  if (height < ROWS || width < COLUMNS) {  // at an edge: one by one
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) {
      const int y = i / COLUMNS, x = i % COLUMNS;
      if (y < height && x < width)
        tile[x][y / PER ^ x / PER % 8].at[y % PER] = in[y * pitch_in + x];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) {
      const int y = i / ROWS, x = i % ROWS;
      if (y < width && x < height)
        out[y * pitch_out + x] = tile[y][x / PER ^ y / PER % 8].at[x % PER];
    }
    return;
  }

  Vector<T> v[EACH][PER];
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int y = (threadIdx.x + e * THREADS) / WIDE;
    const int x = (threadIdx.x + e * THREADS) % WIDE;
    const T* const from = in + (y * PER) * pitch_in + x * PER;
#pragma unroll
    for (int k = 0; k < PER; ++k) v[e][k] = load<T, HINT>(from + k * pitch_in);
  }
  // --8<-- [start:turn]
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int y = (threadIdx.x + e * THREADS) / WIDE;
    const int x = (threadIdx.x + e * THREADS) % WIDE;
#pragma unroll
    for (int k = 0; k < PER; ++k) {
      Vector<T> turned;
#pragma unroll
      for (int j = 0; j < PER; ++j) turned.at[j] = v[e][j].at[k];
      tile[x * PER + k][y ^ x % 8] = turned;
    }
  }
  // --8<-- [end:turn]
  __syncthreads();
#pragma unroll
  for (int e = 0; e < EACH * PER; ++e) {
    const int y = (threadIdx.x + e * THREADS) / HIGH;
    const int x = (threadIdx.x + e * THREADS) % HIGH;
    store<T, HINT>(out + y * pitch_out + x * PER, tile[y][x ^ y / PER % 8]);
  }
}
// --8<-- [end:kernel]
