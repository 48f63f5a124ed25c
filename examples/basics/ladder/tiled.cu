// Rung 3: a block copies one tile of A and one of B into shared memory, where
// its threads use every word TILE times.
// @rung 30 kernel=matmul_tiled block=32x32 tile=32x32
#ifndef TILE
#define TILE 32  // rows and columns of a tile
#endif

// C = A B, row-major: A is m x k, B is k x n, C is m x n. `start` has to stay
// an int, so k is at most 2^31 - TILE. Grid: x over the columns, y over the
// rows. A block has TILE x TILE threads, and the launch bounds promise that:
// with 1024 threads each may have 64 registers, and without the promise the
// compiler need not stay below.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(TILE* TILE)
    matmul_tiled(const float* __restrict__ A, const float* __restrict__ B,
                 float* __restrict__ C, int m, int n, int k) {
  __shared__ float a[TILE][TILE], b[TILE][TILE];
  const int x = threadIdx.x, y = threadIdx.y;
  const int column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
  float sum = 0;
  for (int start = 0; start < k; start += TILE) {
    // Words beyond an edge are zero, in both tiles; rows and columns are tested
    // separately.
    // --8<-- [start:load]
    a[y][x] = row < m && start + x < k ? A[(size_t)row * k + start + x] : 0.0f;
    b[y][x] = start + y < k && column < n ? B[(size_t)(start + y) * n + column]
                                          : 0.0f;
    __syncthreads();  // no thread reads a tile before all have written it
// --8<-- [end:load]
#pragma unroll
    // --8<-- [start:multiply]
    for (int i = 0; i < TILE; ++i) sum += a[y][i] * b[i][x];
    __syncthreads();  // no thread writes the next tile before all have read
    // --8<-- [end:multiply]
  }
  // All threads load and wait, also those without an element of C, which stop
  // only here.
  // --8<-- [start:store]
  if (row < m && column < n) C[(size_t)row * n + column] = sum;
  // --8<-- [end:store]
}
// --8<-- [end:kernel]
