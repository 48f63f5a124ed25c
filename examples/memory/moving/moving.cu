// Copies inside the GPU whose bytes wait in shared memory meanwhile.
#include <cuda_pipeline.h>

#ifndef AHEAD
#define AHEAD 4  // pieces that are under way at the same time
#endif

// --8<-- [start:async]
// cp.async: each thread has a ring of AHEAD pieces of 16 bytes in shared
// memory, which nobody else touches. So no barrier is needed.
extern "C" __global__ void copy_async(const float* __restrict__ in,
                                      float* __restrict__ out, size_t n) {
  extern __shared__ uint4 ring[];
  const uint4* from = (const uint4*)in;
  uint4* to = (uint4*)out;
  const size_t vectors = n / 4, step = (size_t)gridDim.x * blockDim.x;
  const size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  uint4* mine = ring + threadIdx.x;
  size_t next = first;  // the vector that is asked for next
#pragma unroll
  for (int stage = 0; stage < AHEAD; ++stage, next += step) {
    if (next < vectors)
      __pipeline_memcpy_async(mine + stage * blockDim.x, from + next, 16);
    __pipeline_commit();
  }
  int stage = 0;
  for (size_t done = first; done < vectors; done += step, next += step) {
    __pipeline_wait_prior(AHEAD - 1);  // the oldest has come
    to[done] = mine[stage * blockDim.x];
    if (next < vectors)
      __pipeline_memcpy_async(mine + stage * blockDim.x, from + next, 16);
    __pipeline_commit();
    stage = stage + 1 < AHEAD ? stage + 1 : 0;
  }
  const size_t rest = 4 * vectors + threadIdx.x;  // at most three floats
  if (blockIdx.x == 0 && rest < n) out[rest] = in[rest];
}
// --8<-- [end:async]
