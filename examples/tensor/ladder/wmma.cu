// Rung 2: tensor cores through WMMA, the interface of CUDA C++. A warp holds
// 16 x 16 pieces of A, B and C in its registers; which lane has what is not
// said.
// @rung 20 kernel=gemm_wmma block=256 tile=128x128
// requires: sm_80
#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda;

// Rows and columns of C for a block, steps of depth in shared memory at a time.
constexpr int BM = 128, BN = 128, BK = 32;
constexpr int WM = 64, WN = 32;  // rows and columns of C for a warp

// Lines are 8 elements longer than they need to be, so that lines below each
// other begin in different banks.
constexpr int PITCH_A = BK + 8, PITCH_B = BN + 8;

// C = A B in bf16 with sums in fp32, row-major: A is m x k, B is k x n, C is
// m x n; k and n are multiples of 8. Grid: x over the columns, y over the rows.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(256)
    gemm_wmma(const __nv_bfloat16* __restrict__ A,
              const __nv_bfloat16* __restrict__ B,
              __nv_bfloat16* __restrict__ C, int m, int n, int k) {
  __shared__ __align__(128) __nv_bfloat16 a[BM * PITCH_A], b[BK * PITCH_B];
  __shared__ __align__(128) float results[8][16 * 16];  // for each warp
  const int t = threadIdx.x, top = blockIdx.y * BM, left = blockIdx.x * BN;
  const int warp = t / 32, lane = t % 32;
  const int warp_row = warp / (BN / WN) * WM,
            warp_column = warp % (BN / WN) * WN;

  // --8<-- [start:fragments]
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[WM / 16][WN / 16];
#pragma unroll
  for (int i = 0; i < WM / 16; ++i)
#pragma unroll
    for (int j = 0; j < WN / 16; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
  // --8<-- [end:fragments]

  for (int start = 0; start < k; start += BK) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < BM; i += 64) {  // 4 threads on a line of A
      const int row = t / 4 + i, column = t % 4 * 8;
      const bool inside = top + row < m && start + column < k;
      *reinterpret_cast<uint4*>(a + row * PITCH_A + column) =
          inside ? *reinterpret_cast<const uint4*>(A + (size_t)(top + row) * k +
                                                   start + column)
                 : uint4{};
    }
#pragma unroll
    for (int i = 0; i < BK; i += 16) {  // 16 threads on a line of B
      const int row = t / 16 + i, column = t % 16 * 8;
      const bool inside = start + row < k && left + column < n;
      *reinterpret_cast<uint4*>(b + row * PITCH_B + column) =
          inside ? *reinterpret_cast<const uint4*>(
                       B + (size_t)(start + row) * n + left + column)
                 : uint4{};
    }
    __syncthreads();
    // --8<-- [start:multiply]
#pragma unroll
    for (int step = 0; step < BK; step += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major>
          of_a[WM / 16];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major>
          of_b[WN / 16];
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
        wmma::load_matrix_sync(
            of_a[i], a + (warp_row + i * 16) * PITCH_A + step, PITCH_A);
#pragma unroll
      for (int j = 0; j < WN / 16; ++j)
        wmma::load_matrix_sync(
            of_b[j], b + step * PITCH_B + warp_column + j * 16, PITCH_B);
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 16; ++j)
          wmma::mma_sync(sum[i][j], of_a[i], of_b[j], sum[i][j]);
    }
    // --8<-- [end:multiply]
  }

  // --8<-- [start:store]
  // Which lane has which result is not said, so results go through shared
  // memory, where their order is known.
#pragma unroll
  for (int i = 0; i < WM / 16; ++i)
#pragma unroll
    for (int j = 0; j < WN / 16; ++j) {
      wmma::store_matrix_sync(results[warp], sum[i][j], 16,
                              wmma::mem_row_major);
      __syncwarp();
      const int row = top + warp_row + i * 16 + lane / 2;
      const int column = left + warp_column + j * 16 + lane % 2 * 8;
      if (row < m && column < n) {
        const float* const from = results[warp] + lane * 8;
        __align__(16) __nv_bfloat162 eight[4];
#pragma unroll
        for (int p = 0; p < 4; ++p)
          eight[p] = __floats2bfloat162_rn(from[2 * p], from[2 * p + 1]);
        *reinterpret_cast<uint4*>(C + (size_t)row * n + column) =
            *reinterpret_cast<const uint4*>(eight);
      }
      __syncwarp();
    }
  // --8<-- [end:store]
}
// --8<-- [end:kernel]
