// Solution of an exercise: C = alpha A B + beta C for small matrices, with
// tiles of 32 x 32, so that there are many of them.
// @rung kernel=sgemm_small_tiles block=256 tile=32x32

// A is m x k, B is k x n, C is m x n, row-major. Grid: x over the columns, y
// over the rows; a block of 256 threads for each tile.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(256)
    sgemm_small_tiles(const float* __restrict__ A, const float* __restrict__ B,
                      float* __restrict__ C, int m, int n, int k, float alpha,
                      float beta) {
  constexpr int
      TILE = 32,
      ROWS = 4;  // a thread computes 4 results of one column, 8 rows apart
  __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
  const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
  const int column = blockIdx.x * TILE + x, top = blockIdx.y * TILE + y;
  float sum[ROWS] = {}, a_next[ROWS], b_next[ROWS];

  // Zeros stand where a tile reaches past the matrices.
  auto fetch = [&](int start) {
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      const int row = top + 8 * i, depth = start + y + 8 * i;
      a_next[i] =
          row < m && start + x < k ? A[(size_t)row * k + start + x] : 0.0f;
      b_next[i] =
          depth < k && column < n ? B[(size_t)depth * n + column] : 0.0f;
    }
  };
  fetch(0);
  for (int start = 0; start < k; start += TILE) {
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      a_tile[y + 8 * i][x] = a_next[i];
      b_tile[y + 8 * i][x] = b_next[i];
    }
    __syncthreads();
    fetch(start + TILE);  // the next words travel while these are multiplied
#pragma unroll
    for (int kk = 0; kk < TILE; ++kk) {
      const float b = b_tile[kk][x];
#pragma unroll
      for (int i = 0; i < ROWS; ++i) sum[i] += a_tile[y + 8 * i][kk] * b;
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const int row = top + 8 * i;
    if (row >= m || column >= n) continue;
    float* const c = C + (size_t)row * n + column;
    *c = beta == 0.0f ? alpha * sum[i] : alpha * sum[i] + beta * *c;
  }
}
// --8<-- [end:kernel]
