// The tiled product with both barriers, without the first, and without the
// second.
#define TILE 32

template <bool FIRST, bool SECOND>
__device__ __forceinline__ void multiply(const float* __restrict__ A,
                                         const float* __restrict__ B,
                                         float* __restrict__ C, int n) {
  __shared__ float a[TILE][TILE], b[TILE][TILE];
  const int x = threadIdx.x, y = threadIdx.y;
  const int column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
  float sum = 0;
  // n is a multiple of TILE here: without edges nothing but the barriers can go
  // wrong.
  // --8<-- [start:loop]
  for (int start = 0; start < n; start += TILE) {
    a[y][x] = A[(size_t)row * n + start + x];
    b[y][x] = B[(size_t)(start + y) * n + column];
    if (FIRST) __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += a[y][i] * b[i][x];
    if (SECOND) __syncthreads();
  }
  // --8<-- [end:loop]
  C[(size_t)row * n + column] = sum;
}

extern "C" __global__ void __launch_bounds__(TILE* TILE)
    both(const float* __restrict__ A, const float* __restrict__ B,
         float* __restrict__ C, int n) {
  multiply<true, true>(A, B, C, n);
}

extern "C" __global__ void __launch_bounds__(TILE* TILE)
    no_first(const float* __restrict__ A, const float* __restrict__ B,
             float* __restrict__ C, int n) {
  multiply<false, true>(A, B, C, n);
}

extern "C" __global__ void __launch_bounds__(TILE* TILE)
    no_second(const float* __restrict__ A, const float* __restrict__ B,
              float* __restrict__ C, int n) {
  multiply<true, false>(A, B, C, n);
}
