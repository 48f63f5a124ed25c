// The product in tiles of 16 x 16, in versions that separate what sources mix:
// where shared memory comes from, and whether the compiler knows the loop's
// length.
//
//   static_known      static shared memory, known length
//   dynamic_known     dynamic shared memory, known length
//   static_unknown    static shared memory, length from blockDim
//   dynamic_unknown   dynamic shared memory, length from blockDim
//   linear_guard      a test that many first versions have, and that fails
#define TILE 16

// One tile after the other, as in tiled.cu; the caller provides a and b in
// shared memory. KNOWN: whether the compiler knows how long the loop is.
// --8<-- [start:multiply]
template <bool KNOWN>
__device__ __forceinline__ void multiply(const float* __restrict__ A,
                                         const float* __restrict__ B,
                                         float* __restrict__ C, int m, int n,
                                         int k, float* a, float* b) {
  // Both are 16, but the compiler knows only the first.
  const int size = KNOWN ? TILE : blockDim.x;
  // --8<-- [end:multiply]
  const int x = threadIdx.x, y = threadIdx.y;
  const int column = blockIdx.x * size + x, row = blockIdx.y * size + y;
  float sum = 0;
  for (int start = 0; start < k; start += size) {
    a[y * size + x] =
        row < m && start + x < k ? A[(size_t)row * k + start + x] : 0.0f;
    b[y * size + x] = start + y < k && column < n
                          ? B[(size_t)(start + y) * n + column]
                          : 0.0f;
    __syncthreads();
    for (int i = 0; i < size; ++i) sum += a[y * size + i] * b[i * size + x];
    __syncthreads();
  }
  if (row < m && column < n) C[(size_t)row * n + column] = sum;
}

// --8<-- [start:static]
extern "C" __global__ void __launch_bounds__(TILE* TILE)
    static_known(const float* __restrict__ A, const float* __restrict__ B,
                 float* __restrict__ C, int m, int n, int k) {
  // The compiler sets the size.
  __shared__ __align__(16) float a[TILE * TILE], b[TILE * TILE];
  multiply<true>(A, B, C, m, n, k, a, b);
}
// --8<-- [end:static]

// --8<-- [start:dynamic]
extern "C" __global__ void __launch_bounds__(TILE* TILE)
    dynamic_known(const float* __restrict__ A, const float* __restrict__ B,
                  float* __restrict__ C, int m, int n, int k) {
  // The launch sets the size: shared=bytes.
  extern __shared__ __align__(16) float memory[];
  multiply<true>(A, B, C, m, n, k, memory, memory + TILE * TILE);
}
// --8<-- [end:dynamic]

// --8<-- [start:unknown]
extern "C" __global__ void __launch_bounds__(TILE* TILE)
    static_unknown(const float* __restrict__ A, const float* __restrict__ B,
                   float* __restrict__ C, int m, int n, int k) {
  __shared__ __align__(16) float a[TILE * TILE], b[TILE * TILE];
  multiply<false>(A, B, C, m, n, k, a, b);
}

extern "C" __global__ void __launch_bounds__(TILE* TILE)
    dynamic_unknown(const float* __restrict__ A, const float* __restrict__ B,
                    float* __restrict__ C, int m, int n, int k) {
  extern __shared__ __align__(16) float memory[];
  multiply<false>(A, B, C, m, n, k, memory, memory + blockDim.x * blockDim.y);
}
// --8<-- [end:unknown]

// Tests the linear index in the place of row and column: all reads stay inside
// A and B, but that is not enough.
extern "C" __global__ void __launch_bounds__(TILE* TILE)
    linear_guard(const float* __restrict__ A, const float* __restrict__ B,
                 float* __restrict__ C, int m, int n, int k) {
  __shared__ float a[TILE][TILE], b[TILE][TILE];
  const int x = threadIdx.x, y = threadIdx.y;
  const int column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
  float sum = 0;
  for (int start = 0; start < k; start += TILE) {
    // --8<-- [start:linear-guard]
    const size_t in_a = (size_t)row * k + start + x,
                 in_b = (size_t)(start + y) * n + column;
    // Past the end of a row: the next row of A.
    a[y][x] = in_a < (size_t)m * k ? A[in_a] : 0.0f;
    // Past the last row of B: zero.
    b[y][x] = in_b < (size_t)k * n ? B[in_b] : 0.0f;
    // --8<-- [end:linear-guard]
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += a[y][i] * b[i][x];
    __syncthreads();
  }
  if (row < m && column < n) C[(size_t)row * n + column] = sum;
}
