// A solution: the kernel of thread_tile.cu with two columns per thread, so that
// it uses a word of A twice.
// @rung kernel=matmul_two_columns block=256 tile=64x64
#define BM 64
#define BN 64
#define BK 8
#define TM 8
#define THREADS 256

// C = A B, row-major: A is m x k, B is k x n, C is m x n. Grid: x over the
// columns, y over the rows. The launch bounds ask for three blocks on an SM:
// more registers per thread leave too few threads to cover the wait for memory.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
    matmul_two_columns(const float* __restrict__ A, const float* __restrict__ B,
                       float* __restrict__ C, int m, int n, int k) {
  __shared__ __align__(16) float a[BM][BK];
  __shared__ __align__(16) float b[BK][BN];
  const int t = threadIdx.x;
  // Columns x and x + 32: lanes stay neighbors in both.
  const int x = t % 32, y = t / 32 * TM;
  const int left = blockIdx.x * BN, top = blockIdx.y * BM;
  float sum[TM][2] = {};
  for (int start = 0; start < k; start += BK) {
#pragma unroll
    for (int first = 0; first < BM * BK; first += THREADS) {
      const int i = first + t;
      const int row = top + i / BK, inner = start + i % BK;
      a[i / BK][i % BK] =
          row < m && inner < k ? A[(size_t)row * k + inner] : 0.0f;
    }
#pragma unroll
    for (int first = 0; first < BK * BN; first += THREADS) {
      const int i = first + t;
      const int inner = start + i / BN, column = left + i % BN;
      b[i / BN][i % BN] =
          inner < k && column < n ? B[(size_t)inner * n + column] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < BK; ++i) {
      const float b0 = b[i][x], b1 = b[i][x + 32];
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
      const int column = left + x + 32 * c;
      if (row < m && column < n) C[(size_t)row * n + column] = sum[r][c];
    }
  }
}
