// Products on the tensor cores by WMMA, the interface of CUDA C++: factors in
// fp16, sums in fp32. All matrices are row-major. Kernels:
//
//   first_wmma   16 x 16 results by one warp
//   first_fma    the same by FMAs
//   who_holds    which lane holds which elements
//   wmma_direct  a product of matrices, factors from global memory
//   load8        eight elements of a row, or zeros
//   wmma_tiled   the same through tiles in shared memory, for any extents
#include <cuda_fp16.h>
#include <mma.h>

// --8<-- [start:fragments]
using namespace nvcuda;
using FragmentA =
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major>;
using FragmentB =
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major>;
using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;
// --8<-- [end:fragments]

// D = A B, each 16 x 16. One block of one warp.
// --8<-- [start:first]
extern "C" __global__ void first_wmma(const half* A, const half* B, float* D) {
  FragmentA a;
  FragmentB b;
  Sums sums;
  wmma::load_matrix_sync(a, A, 16);  // 16: from one row to the next
  wmma::load_matrix_sync(b, B, 16);
  wmma::fill_fragment(sums, 0.0f);
  wmma::mma_sync(sums, a, b, sums);  // sums = a b + sums
  wmma::store_matrix_sync(D, sums, 16, wmma::mem_row_major);
}
// --8<-- [end:first]

// The same product by fp32 FMAs. One block of one warp: a lane has half a row
// of D.
extern "C" __global__ void first_fma(const float* A, const float* B, float* D) {
  const int row = threadIdx.x / 2, column = threadIdx.x % 2 * 8;
  float sum[8] = {};
#pragma unroll
  for (int i = 0; i < 16; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j)
      sum[j] = fmaf(A[row * 16 + i], B[i * 16 + column + j], sum[j]);
  for (int j = 0; j < 8; ++j) D[row * 16 + column + j] = sum[j];
}

// What each lane holds of three matrices of 16 x 16. Outputs: a row of
// num_elements numbers for each of the 32 lanes, in the order of the fragment.
// One block of one warp.
// --8<-- [start:lanes]
extern "C" __global__ void who_holds(const half* A, const half* B,
                                     const float* C, float* a_held,
                                     float* b_held, float* c_held) {
  FragmentA a;
  FragmentB b;
  Sums c;
  wmma::load_matrix_sync(a, A, 16);
  wmma::load_matrix_sync(b, B, 16);
  wmma::load_matrix_sync(c, C, 16, wmma::mem_row_major);
  const int lane = threadIdx.x;
  for (int i = 0; i < a.num_elements; ++i)
    a_held[lane * a.num_elements + i] = __half2float(a.x[i]);
  for (int i = 0; i < b.num_elements; ++i)
    b_held[lane * b.num_elements + i] = __half2float(b.x[i]);
  for (int i = 0; i < c.num_elements; ++i)
    c_held[lane * c.num_elements + i] = c.x[i];
}
// --8<-- [end:lanes]

// C = A B: A is m x k, B is k x n, C is m x n; m, n and k are multiples of 16.
// A warp computes 16 x 16 results, a block of four warps 32 x 32, and every
// factor comes straight from global memory. Grid: x over the columns, y over
// the rows.
// --8<-- [start:direct]
extern "C" __global__ void __launch_bounds__(128)
    wmma_direct(const half* __restrict__ A, const half* __restrict__ B,
                float* __restrict__ C, int m, int n, int k) {
  const int warp = threadIdx.x / 32;
  const int row = (blockIdx.y * 2 + warp / 2) * 16;
  const int column = (blockIdx.x * 2 + warp % 2) * 16;
  if (row >= m || column >= n) return;  // all lanes of the warp, or none
  FragmentA a;
  FragmentB b;
  Sums sums;
  wmma::fill_fragment(sums, 0.0f);
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(a, A + (size_t)row * k + i, k);
    wmma::load_matrix_sync(b, B + (size_t)i * n + column, n);
    wmma::mma_sync(sums, a, b, sums);
  }
  wmma::store_matrix_sync(C + (size_t)row * n + column, sums, n,
                          wmma::mem_row_major);
}
// --8<-- [end:direct]

// --8<-- [start:tiled]
constexpr int BM = 128, BN = 128, BK = 32;  // a block's tile; depth of a step
constexpr int WM = 64, WN = 32;             // the part of each of its 8 warps

// Eight elements of a row, from a column that is a multiple of 8; zeros stand
// beyond the matrix, which has rows x columns. If rows do not begin at
// multiples of 16 bytes, elements are loaded one by one.
__device__ __forceinline__ uint4 load8(const half* M, int rows, int columns,
                                       int row, int column) {
  uint4 found = make_uint4(0, 0, 0, 0);
  if (row >= rows || column >= columns) return found;
  const half* from = M + (size_t)row * columns + column;
  if (columns % 8 == 0) return *reinterpret_cast<const uint4*>(from);
  half* to = reinterpret_cast<half*>(&found);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (column + i < columns) to[i] = from[i];
  return found;
}

// C = A B for any m and n, and any k up to 2^31 - BK. A block of 256 threads
// computes BM x BN results. Grid: x over the columns, y over the rows.
extern "C" __global__ void __launch_bounds__(256)
    wmma_tiled(const half* __restrict__ A, const half* __restrict__ B,
               float* __restrict__ C, int m, int n, int k) {
  // Rows are 16 bytes longer than they need to be, so that rows below each
  // other begin in different banks. A warp's rows begin at a multiple of 32
  // bytes, as WMMA wants it.
  __shared__ __align__(32) half As[BM][BK + 8], Bs[BK][BN + 8];
  __shared__ __align__(32) float edge[8][16][16];
  const int t = threadIdx.x, warp = t / 32, lane = t % 32;
  const int top = blockIdx.y * BM, left = blockIdx.x * BN;
  const int y = warp / (BN / WN) * WM, x = warp % (BN / WN) * WN;
  // Thread t copies 8 elements of two rows of each tile.
  const int row_a = t / (BK / 8), column_a = t % (BK / 8) * 8;
  const int row_b = t / (BN / 8), column_b = t % (BN / 8) * 8;
  uint4 next_a[2], next_b[2];
  const auto load = [&](int start) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      next_a[i] = load8(A, m, k, top + row_a + i * 64, start + column_a);
      next_b[i] = load8(B, k, n, start + row_b + i * 16, left + column_b);
    }
  };
  Sums sums[WM / 16][WN / 16];
#pragma unroll
  for (int i = 0; i < WM / 16; ++i)
#pragma unroll
    for (int j = 0; j < WN / 16; ++j) wmma::fill_fragment(sums[i][j], 0.0f);
  if (k > 0) load(0);
  for (int start = 0; start < k; start += BK) {
    __syncthreads();  // no thread reads the last tiles any more
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      *reinterpret_cast<uint4*>(&As[row_a + i * 64][column_a]) = next_a[i];
      *reinterpret_cast<uint4*>(&Bs[row_b + i * 16][column_b]) = next_b[i];
    }
    __syncthreads();
    // The next tiles arrive during the products.
    if (start + BK < k) load(start + BK);
    // --8<-- [start:multiply]
#pragma unroll
    for (int depth = 0; depth < BK; depth += 16) {
      FragmentA a[WM / 16];
      FragmentB b[WN / 16];
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
        wmma::load_matrix_sync(a[i], &As[y + i * 16][depth], BK + 8);
#pragma unroll
      for (int j = 0; j < WN / 16; ++j)
        wmma::load_matrix_sync(b[j], &Bs[depth][x + j * 16], BN + 8);
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 16; ++j)
          wmma::mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
    }
    // --8<-- [end:multiply]
  }
#pragma unroll
  for (int i = 0; i < WM / 16; ++i)
#pragma unroll
    for (int j = 0; j < WN / 16; ++j) {
      const int row = top + y + i * 16, column = left + x + j * 16;
      if (row + 16 <= m && column + 16 <= n && n % 4 == 0) {
        wmma::store_matrix_sync(C + (size_t)row * n + column, sums[i][j], n,
                                wmma::mem_row_major);
        continue;
      }
      // Results at the edge go by way of shared memory, element by element.
      wmma::store_matrix_sync(&edge[warp][0][0], sums[i][j], 16,
                              wmma::mem_row_major);
      __syncwarp();
      for (int e = lane; e < 256; e += 32)
        if (row + e / 16 < m && column + e % 16 < n)
          C[(size_t)(row + e / 16) * n + column + e % 16] =
              edge[warp][e / 16][e % 16];
      __syncwarp();
    }
}
// --8<-- [end:tiled]
