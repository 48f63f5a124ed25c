// One box of a matrix, brought by the TMA, as it lies in shared memory.
// requires: sm_90
#include "gemm/ladder/tma.cu"

// Copies the box of X that begins at (row, column) into shared memory, and
// writes the words there to `out` in their order. ROWS x COLUMNS: the size of
// the box, as the map X has it.
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
  __syncthreads();  // no thread waits at the barrier before it is initialized
  wait(&arrived, 0);
  for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x)
    out[i] = words[i];
}
// --8<-- [end:show]

// Instances that are compiled by the tests:
// @instance show_box<4, 8>
// @instance show_box<8, 32>
