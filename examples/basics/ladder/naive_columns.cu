// Rung 2: the same kernel with two lines swapped; threadIdx.x runs along a row
// of C.
// @rung 20 kernel=matmul_naive_columns block=32x32 tile=32x32

// C = A B, row-major: A is m x k, B is k x n, C is m x n.
// Grid: x over the columns, y over the rows.
// --8<-- [start:kernel]
extern "C" __global__ void matmul_naive_columns(const float* __restrict__ A,
                                                const float* __restrict__ B,
                                                float* __restrict__ C, int m,
                                                int n, int k) {
  // --8<-- [start:mapping]
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  // --8<-- [end:mapping]
  if (row >= m || column >= n) return;
  // --8<-- [start:loop]
  float sum = 0;
  for (int i = 0; i < k; ++i)
    sum += A[(size_t)row * k + i] * B[(size_t)i * n + column];
  // --8<-- [end:loop]
  C[(size_t)row * n + column] = sum;
}
// --8<-- [end:kernel]
