// The two products of attention for all heads at once, on the CUDA cores, by a
// simple tiled kernel: attention_product. The softmax between them is that of
// softmax.cu.
//
//   multiply           a product, for both ways in which B may lie
//   attention_product  the kernel
//
// requires: sm_80
#include "llm/kernels/rows.cuh"

constexpr int TILE = 64, DEPTH = 16;  // results by results; depths

// C[h] = A[h] B[h / shared_by] or, with TRANSPOSED, A[h] B[h / shared_by]^T. A
// is m x depth, C is m x n; B is depth x n, with TRANSPOSED n x depth. All are
// row-major, and the matrices of the heads lie one behind the other.
// `shared_by` heads of A use the same head of B. Grid: tiles of columns x tiles
// of rows x heads; each of 256 threads has 4 x 4 results.
//
// TRANSPOSED: whether the rows of B are columns of the product.
// Out: type of C, float or bf16.
// --8<-- [start:product]
template <bool TRANSPOSED, typename Out>
__device__ void multiply(const __nv_bfloat16* A, const __nv_bfloat16* B, Out* C,
                         int m, int n, int depth, int shared_by) {
  __shared__ float a[DEPTH][TILE + 4], b[DEPTH][TILE + 4];
  const int head = blockIdx.z, top = blockIdx.y * TILE,
            left = blockIdx.x * TILE;
  A += (size_t)head * m * depth;
  B += (size_t)(head / shared_by) * n * depth;
  C += (size_t)head * m * n;
  const int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;
  float sum[4][4] = {};
  for (int first = 0; first < depth; first += DEPTH) {
    for (int i = threadIdx.x; i < TILE * DEPTH; i += 256) {
      int r = i / DEPTH, k = i % DEPTH;
      a[k][r] = 0.0f;
      if (top + r < m && first + k < depth)
        a[k][r] = to_float(A[(size_t)(top + r) * depth + first + k]);
      // Neighboring threads read neighboring elements of B, too.
      if (!TRANSPOSED) r = i % TILE, k = i / TILE;
      b[k][r] = 0.0f;
      if (left + r < n && first + k < depth)
        b[k][r] =
            to_float(TRANSPOSED ? B[(size_t)(left + r) * depth + first + k]
                                : B[(size_t)(first + k) * n + left + r]);
    }
    __syncthreads();
    for (int k = 0; k < DEPTH; ++k)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
          sum[i][j] += a[k][row + i] * b[k][column + j];
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      if (top + row + i < m && left + column + j < n)
        C[(size_t)(top + row + i) * n + left + column + j] =
            static_cast<Out>(sum[i][j]);
}

template <bool TRANSPOSED, typename Out>
__global__ void __launch_bounds__(256)
    attention_product(const __nv_bfloat16* __restrict__ A,
                      const __nv_bfloat16* __restrict__ B, Out* __restrict__ C,
                      int m, int n, int depth, int shared_by) {
  multiply<TRANSPOSED>(A, B, C, m, n, depth, shared_by);
}
// --8<-- [end:product]

// Instances that are compiled by the tests:
// @instance attention_product<true, float>
// @instance attention_product<false, __nv_bfloat16>
