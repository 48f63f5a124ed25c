// A solution: as thread_tile.cu, with two columns per thread, so that a word of A is used twice.
// @rung kernel=matmul_two_columns block=512 tile=128x64
#define BM 64
#define BN 128
#define BK 8
#define TM 8
#define THREADS 512

// C = A B, row-major: A is m x k, B is k x n, C is m x n. Grid: x over the columns, y over the
// rows. The launch bounds promise the 512 threads, for up to 128 registers each.
extern "C" __global__ void __launch_bounds__(THREADS)
    matmul_two_columns(const float* __restrict__ A, const float* __restrict__ B,
                       float* __restrict__ C, int m, int n, int k) {
  __shared__ __align__(16) float a[BM][BK];
  __shared__ __align__(16) float b[BK][BN];
  const int t = threadIdx.x;
  const int x = t % 64, y = t / 64 * TM;  // columns x and x + 64: lanes stay neighbours in both
  const int left = blockIdx.x * BN, top = blockIdx.y * BM;
  float sum[TM][2] = {};
  for (int start = 0; start < k; start += BK) {
    const int row = top + t / BK, inner = start + t % BK;
    a[t / BK][t % BK] = row < m && inner < k ? A[(size_t)row * k + inner] : 0.0f;
#pragma unroll
    for (int first = 0; first < BK * BN; first += THREADS) {
      const int i = first + t;
      const int of_b = start + i / BN, column = left + i % BN;
      b[i / BN][i % BN] = of_b < k && column < n ? B[(size_t)of_b * n + column] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < BK; ++i) {
      const float b0 = b[i][x], b1 = b[i][x + 64];
#pragma unroll
      for (int r = 0; r < TM; ++r) {
        sum[r][0] += a[y + r][i] * b0;
        sum[r][1] += a[y + r][i] * b1;
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < TM; ++r) {
    const int row = top + y + r;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int column = left + x + 64 * c;
      if (row < m && column < n) C[(size_t)row * n + column] = sum[r][c];
    }
  }
}
