// A sum along rows, whose blocks walk over their rows in chunks of THREADS
// words that arrive early.
// @instance row_sums<1>
// @instance row_sums<4>
#include <cuda_pipeline.h>

constexpr int THREADS = 128;

// out[row] = sum of row `row` of X. One block per row; AHEAD chunks are on
// their way.
// --8<-- [start:kernel]
template <int AHEAD>
__global__ void row_sums(const float* __restrict__ X, float* __restrict__ out,
                         int columns) {
  __shared__ float chunks[AHEAD][THREADS];
  __shared__ float sums[THREADS / 32];
  const int t = threadIdx.x;
  const float* row = X + (size_t)blockIdx.x * columns;
  const int steps = (columns + THREADS - 1) / THREADS;
  const auto copy = [&](int step) {
    const int i = step * THREADS + t;
    if (i < columns)
      __pipeline_memcpy_async(&chunks[step % AHEAD][t], row + i, 4);
    __pipeline_commit();  // also of nothing, so that every step has one
  };
  for (int s = 0; s < AHEAD; ++s) copy(s);
  float sum = 0;
  for (int s = 0; s < steps; ++s) {
    __pipeline_wait_prior(
        AHEAD -
        1);  // of the last AHEAD chunks, all but the first may be missing
    // Each thread reads the word that it asked for itself: nobody waits for
    // anybody.
    if (s * THREADS + t < columns) sum += chunks[s % AHEAD][t];
    copy(s + AHEAD);
  }
  for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(~0u, sum, by);
  if (t % 32 == 0) sums[t / 32] = sum;
  __syncthreads();
  if (t == 0) {
    for (int w = 1; w < THREADS / 32; ++w) sum += sums[w];
    out[blockIdx.x] = sum;
  }
}
// --8<-- [end:kernel]
