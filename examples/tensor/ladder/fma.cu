// Rung 1: no tensor cores. bf16 becomes fp32 on the way into shared memory, and
// each thread adds up 8 x 8 results with FMAs, as in the part on matrix
// products in fp32.
//
//   load8      eight elements of a row
//   low, high  the two bf16 of a word, as fp32
//   gemm_fma   the kernel
//
// @rung 10 kernel=gemm_fma block=256 tile=128x128
// requires: sm_80
#include <cuda_bf16.h>

// Rows and columns of a tile of C, steps of depth in shared memory at a time.
constexpr int BM = 128, BN = 128, BK = 16;

// Eight elements, or zeros.
__device__ __forceinline__ uint4 load8(const __nv_bfloat16* from, bool inside) {
  return inside ? *reinterpret_cast<const uint4*>(from) : uint4{};
}

// The two bf16 of a word; their bits are the upper half of an fp32.
__device__ __forceinline__ float low(unsigned word) {
  return __uint_as_float(word << 16);
}
__device__ __forceinline__ float high(unsigned word) {
  return __uint_as_float(word & 0xffff0000u);
}

// C = A B in bf16 with sums in fp32, row-major: A is m x k, B is k x n, C is
// m x n; k and n are multiples of 8. Grid: x over the columns, y over the rows.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(256)
    gemm_fma(const __nv_bfloat16* __restrict__ A,
             const __nv_bfloat16* __restrict__ B, __nv_bfloat16* __restrict__ C,
             int m, int n, int k) {
  __shared__ __align__(16) float a[BK][BM + 4], b[BK][BN];  // A is turned
  const int t = threadIdx.x, top = blockIdx.y * BM, left = blockIdx.x * BN;
  const int row_a = t / 2, column_a = t % 2 * 8;
  const int row_b = t / 16, column_b = t % 16 * 8;
  const int x = t % 16 * 4, y = t / 16 * 4;  // and again 64 further on
  float sum[8][8] = {};
  for (int start = 0; start < k; start += BK) {
    const uint4 from_a = load8(A + (size_t)(top + row_a) * k + start + column_a,
                               top + row_a < m && start + column_a < k);
    const uint4 from_b =
        load8(B + (size_t)(start + row_b) * n + left + column_b,
              start + row_b < k && left + column_b < n);
    const unsigned words_a[4] = {from_a.x, from_a.y, from_a.z, from_a.w};
    const unsigned words_b[4] = {from_b.x, from_b.y, from_b.z, from_b.w};
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      a[column_a + 2 * i][row_a] = low(words_a[i]);
      a[column_a + 2 * i + 1][row_a] = high(words_a[i]);
      b[row_b][column_b + 2 * i] = low(words_b[i]);
      b[row_b][column_b + 2 * i + 1] = high(words_b[i]);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < BK; ++i) {
      float p[8], q[8];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        *reinterpret_cast<float4*>(p + 4 * h) =
            *reinterpret_cast<const float4*>(&a[i][y + 64 * h]);
        *reinterpret_cast<float4*>(q + 4 * h) =
            *reinterpret_cast<const float4*>(&b[i][x + 64 * h]);
      }
#pragma unroll
      for (int r = 0; r < 8; ++r)
#pragma unroll
        for (int c = 0; c < 8; ++c) sum[r][c] += p[r] * q[c];
    }
  }
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    const int row = top + y + r % 4 + r / 4 * 64;
    if (row >= m) continue;
#pragma unroll
    for (int c = 0; c < 8; c += 2) {
      const int column = left + x + c % 4 + c / 4 * 64;
      if (column < n)
        *reinterpret_cast<__nv_bfloat162*>(C + (size_t)row * n + column) =
            __floats2bfloat162_rn(sum[r][c], sum[r][c + 1]);
    }
  }
}
// --8<-- [end:kernel]
