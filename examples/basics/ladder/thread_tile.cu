// Rung 4: a thread computes TM results, one below the other, so that a word of
// B is read from shared memory once and used TM times.
// @rung 40 kernel=matmul_thread_tile block=512 tile=64x64

// C = A B, row-major: A is m x k, B is k x n, C is m x n, and k at most
// 2^31 - BK, so that `start` stays an int. Grid: x over the columns, y over the
// rows. A block of BM * BN / TM threads computes BM rows
// and BN columns of C, in steps of depth BK.
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int TM>
__device__ __forceinline__ void multiply(const float* __restrict__ A,
                                         const float* __restrict__ B,
                                         float* __restrict__ C, int m, int n,
                                         int k) {
  constexpr int THREADS = BM * BN / TM;
  // Aligned, so that four words of a row can be read in one load.
  __shared__ __align__(16) float a[BM][BK];
  __shared__ __align__(16) float b[BK][BN];
  const int t = threadIdx.x;
  // The first of this thread's TM results, in the tile.
  const int x = t % BN, y = t / BN * TM;
  const int left = blockIdx.x * BN, top = blockIdx.y * BM;
  float sum[TM] = {};
  for (int start = 0; start < k; start += BK) {
    // --8<-- [start:load]
    // With 64 x 64 x 8 and 512 threads each loop runs once: one word of A, one
    // of B.
#pragma unroll
    for (int first = 0; first < BM * BK; first += THREADS) {
      const int i = first + t;
      const int row = top + i / BK, inner = start + i % BK;
      if (BM * BK % THREADS == 0 || i < BM * BK)
        a[i / BK][i % BK] =
            row < m && inner < k ? A[(size_t)row * k + inner] : 0.0f;
    }
#pragma unroll
    for (int first = 0; first < BK * BN; first += THREADS) {
      const int i = first + t;
      const int inner = start + i / BN, column = left + i % BN;
      if (BK * BN % THREADS == 0 || i < BK * BN)
        b[i / BN][i % BN] =
            inner < k && column < n ? B[(size_t)inner * n + column] : 0.0f;
    }
    __syncthreads();
    // --8<-- [end:load]
    // --8<-- [start:multiply]
#pragma unroll 8
    for (int i = 0; i < BK; ++i) {
      const float of_b = b[i][x];  // read once, used TM times
#pragma unroll
      for (int r = 0; r < TM; ++r) sum[r] += a[y + r][i] * of_b;
    }
    __syncthreads();
    // --8<-- [end:multiply]
  }
  // --8<-- [start:store]
  const int column = left + x;
#pragma unroll
  for (int r = 0; r < TM; ++r) {
    const int row = top + y + r;
    if (row < m && column < n) C[(size_t)row * n + column] = sum[r];
  }
  // --8<-- [end:store]
}
// --8<-- [end:kernel]

// The launch bounds promise 512 threads and ask for two such blocks on an SM,
// so that one computes while the other waits for memory. That leaves a thread
// 64 registers: results, a strip of A.
// --8<-- [start:instance]
extern "C" __global__ void __launch_bounds__(64 * 64 / 8, 2)
    matmul_thread_tile(const float* __restrict__ A, const float* __restrict__ B,
                       float* __restrict__ C, int m, int n, int k) {
  multiply<64, 64, 8, 8>(A, B, C, m, n, k);
}
// --8<-- [end:instance]
