// Rung 3: a block copies one tile of A and one of B into shared memory, and
// every word of them is used TILE times.
// @rung 30 kernel=matmul_tiled block=32x32 tile=32x32
#ifndef TILE
#define TILE 32
#endif

// C = A B, row-major: A is m x k, B is k x n, C is m x n, and k at most
// 2^31 - TILE, so that `start` stays an int. Grid: x over the columns, y over
// the rows. Block: TILE x TILE threads, which the launch bounds
// promise: with 1024 of them a thread may have 64 registers, and without the
// promise the compiler need not keep below that.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(TILE* TILE)
    matmul_tiled(const float* __restrict__ A, const float* __restrict__ B,
                 float* __restrict__ C, int m, int n, int k) {
  __shared__ float a[TILE][TILE], b[TILE][TILE];
  const int x = threadIdx.x, y = threadIdx.y;
  const int column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
  float sum = 0;
  for (int start = 0; start < k; start += TILE) {
    // Zero where the tile hangs over an edge, in both, and row and column are
    // tested apart.
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
  // All threads load and wait, also those without an element of C: they stop
  // only here.
  // --8<-- [start:store]
  if (row < m && column < n) C[(size_t)row * n + column] = sum;
  // --8<-- [end:store]
}
// --8<-- [end:kernel]
