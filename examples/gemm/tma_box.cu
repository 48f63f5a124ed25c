// One box of a matrix, brought by the TMA, as it lies in shared memory; and a
// stencil whose borders are the zeros that the TMA fills in.
// @instance show_box<4, 8>
// @instance show_box<8, 32>
// @instance smooth<32, 32>
// requires: sm_90
#include "tma.cu"

// out: ROWS x COLUMNS words of shared memory, in their order, after a copy of
// the box at (row, column) of X; the box must have just this size.
// --8<-- [start:show]
template <int ROWS, int COLUMNS>
__global__ void show_box(const __grid_constant__ CUtensorMap X,
                         float* __restrict__ out, int row, int column) {
  __shared__ __align__(1024) float words[ROWS * COLUMNS];
  __shared__ Barrier arrived;
  if (threadIdx.x == 0) {
    init(&arrived);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    arrive_and_expect(&arrived, ROWS * COLUMNS * sizeof(float));
    copy_box(words, X, row, column, &arrived);
  }
  __syncthreads();  // nobody looks at the barrier before it is one
  wait(&arrived, 0);
  for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x)
    out[i] = words[i];
}
// --8<-- [end:show]

// out = the mean of each word of X and its four neighbors, beyond the edges 0.
// Grid: tiles of WIDE x HIGH words, columns x rows; block: WIDE x 8 threads.
// The box: HIGH + 2 rows, WIDE + 8 columns.
// --8<-- [start:smooth]
template <int WIDE, int HIGH>
__global__ void smooth(const __grid_constant__ CUtensorMap X,
                       float* __restrict__ out, int rows, int columns) {
  // A word more on either side is needed; the box begins four to the left, so
  // that its rows are whole pieces of 16 bytes.
  __shared__ __align__(128) float in[HIGH + 2][WIDE + 8];
  __shared__ Barrier arrived;
  const int left = blockIdx.x * WIDE, top = blockIdx.y * HIGH, x = threadIdx.x;
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    init(&arrived);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    arrive_and_expect(&arrived, sizeof(in));
    copy_box(&in[0][0], X, top - 1, left - 4, &arrived);
  }
  __syncthreads();
  wait(&arrived, 0);
  for (int y = threadIdx.y; y < HIGH; y += blockDim.y)
    if (top + y < rows && left + x < columns)
      out[(size_t)(top + y) * columns + left + x] =
          (in[y + 1][x + 4] + in[y][x + 4] + in[y + 2][x + 4] +
           in[y + 1][x + 3] + in[y + 1][x + 5]) /
          5;
}
// --8<-- [end:smooth]
