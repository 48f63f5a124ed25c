// A square matrix turned in its place: a block swaps two tiles that mirror each
// other at the diagonal. It has read both before it writes.
//
//   transpose_in_place          any pitch and alignment, 4 bytes at a time
//   transpose_in_place_vectors  16 bytes at a time: x aligned to 16 bytes, the
//                               pitch a multiple of 16 bytes
//
// TILE: rows and columns of a tile. THREADS: of a block. One block for each
// pair of tiles, t (t + 1) / 2 for t = ceil(n / TILE).
// BOTH: both tiles are on their way at once. group: as in order.cuh.
//
// @instance transpose_in_place<float,64,128>
// @instance transpose_in_place_vectors<float,64,128,true>
#include "order.cuh"

// --8<-- [start:pair]
// Pair k of the tiles (row, column) with column <= row, t of them a side. The
// upper half of this triangle, turned by 180 degrees, fills the lower one up
// to a rectangle, whose order is that of order.cuh.
__device__ __forceinline__ Tile pair_at(unsigned k, int t, int group) {
  const Tile at = tile_at(k, (t + 1) / 2, t | 1, group);
  const int left = t - at.row;  // tiles in row t - 1 - at.row of the triangle
  if (at.column < left) return {left - 1, at.column};
  return {at.row - t % 2, at.column - left};
}
// --8<-- [end:pair]

// --8<-- [start:kernel]
template <class T, int TILE, int THREADS>
__global__ void __launch_bounds__(THREADS)
    transpose_in_place(T* x, int n, long long pitch, int group) {
  constexpr int PAD = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
  constexpr int EACH = TILE * TILE / THREADS;
  __shared__ T lower[TILE][TILE + PAD], upper[TILE][TILE + PAD];
  const Tile at = pair_at(blockIdx.x, (n + TILE - 1) / TILE, group);
  const int row = at.row * TILE, column = at.column * TILE;
  T* const below = x + row * pitch + column;
  T* const above = x + column * pitch + row;
  const int height = n - row, width = n - column;  // height <= width
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int i = (threadIdx.x + e * THREADS) / TILE;
    const int j = (threadIdx.x + e * THREADS) % TILE;
    if (i < height && j < width) lower[i][j] = below[i * pitch + j];
    if (i < width && j < height) upper[i][j] = above[i * pitch + j];
  }
  __syncthreads();
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int i = (threadIdx.x + e * THREADS) / TILE;
    const int j = (threadIdx.x + e * THREADS) % TILE;
    if (i < height && j < width) below[i * pitch + j] = upper[j][i];
    if (i < width && j < height) above[i * pitch + j] = lower[j][i];
  }
}
// --8<-- [end:kernel]

template <class T>
struct alignas(16) Vector {
  T at[16 / sizeof(T)];
};

// What a thread holds of a tile: squares of vectors.
template <class T, int TILE, int THREADS>
struct Held {
  static constexpr int PER = 16 / sizeof(T), WIDE = TILE / PER;
  static constexpr int EACH = WIDE * WIDE / THREADS;
  Vector<T> v[EACH][PER];

  __device__ __forceinline__ void read(const T* from, long long pitch) {
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
      const int y = (threadIdx.x + e * THREADS) / WIDE;
      const int x = (threadIdx.x + e * THREADS) % WIDE;
#pragma unroll
      for (int k = 0; k < PER; ++k)
        v[e][k] = *reinterpret_cast<const Vector<T>*>(
            from + (y * PER + k) * pitch + x * PER);
    }
  }

  // Into shared memory, turned.
  __device__ __forceinline__ void turn(Vector<T> (*tile)[WIDE]) const {
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
  }
};

template <class T, int TILE, int THREADS>
__device__ __forceinline__ void put_out(
    T* to, long long pitch, const Vector<T> (*tile)[TILE * sizeof(T) / 16]) {
  constexpr int PER = 16 / sizeof(T), WIDE = TILE / PER;
#pragma unroll
  for (int e = 0; e < TILE * WIDE / THREADS; ++e) {
    const int y = (threadIdx.x + e * THREADS) / WIDE;
    const int x = (threadIdx.x + e * THREADS) % WIDE;
    *reinterpret_cast<Vector<T>*>(to + y * pitch + x * PER) =
        tile[y][x ^ y / PER % 8];
  }
}

// --8<-- [start:vectors]
template <class T, int TILE, int THREADS, bool BOTH>
__global__ void __launch_bounds__(THREADS)
    transpose_in_place_vectors(T* x, int n, long long pitch, int group) {
  constexpr int PER = 16 / sizeof(T), WIDE = TILE / PER;
  static_assert(WIDE * WIDE % THREADS == 0 && WIDE % 8 == 0, "even shares");
  extern __shared__ uint4 bytes[];
  auto* const lower = reinterpret_cast<Vector<T>(*)[WIDE]>(bytes);
  auto* const upper = lower + TILE;
  const Tile at = pair_at(blockIdx.x, (n + TILE - 1) / TILE, group);
  const int row = at.row * TILE, column = at.column * TILE;
  T* const below = x + row * pitch + column;
  T* const above = x + column * pitch + row;
  const int height = n - row, width = n - column;  // height <= width

  if (height >= TILE) {
    Held<T, TILE, THREADS> a, b;
    a.read(below, pitch);
    if (BOTH && row != column) b.read(above, pitch);
    a.turn(lower);
    if (!BOTH && row != column) b.read(above, pitch);
    if (row != column) b.turn(upper);
    __syncthreads();
    put_out<T, TILE, THREADS>(above, pitch, lower);
    if (row != column) put_out<T, TILE, THREADS>(below, pitch, upper);
    return;
  }
  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
    const int a = i / TILE, b = i % TILE;  // element (a, b) below, (b, a) above
    if (a < height && b < width) {
      lower[b][a / PER].at[a % PER] = below[a * pitch + b];
      upper[a][b / PER].at[b % PER] = above[b * pitch + a];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
    const int a = i / TILE, b = i % TILE;
    if (a < height && b < width) {
      above[b * pitch + a] = lower[b][a / PER].at[a % PER];
      below[a * pitch + b] = upper[a][b / PER].at[b % PER];
    }
  }
}
// --8<-- [end:vectors]
