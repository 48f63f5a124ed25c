// How fast mma.sync can be: products of what is in registers, and nothing else.
// requires: sm_80
#include "mma.cuh"

// Each warp multiplies STEPS times with CHAINS sums that do not depend on each
// other. factors: 128 words of bf16 pairs. out: a word for each thread. Grid:
// any number of blocks of any number of warps.
// @instance mma_peak<4096, 8>
// --8<-- [start:kernel]
template <int STEPS, int CHAINS>
__global__ void mma_peak(const unsigned* __restrict__ factors,
                         float* __restrict__ out) {
  const int lane = threadIdx.x % 32;
  unsigned a[4], b[2 * CHAINS];
#pragma unroll
  for (int i = 0; i < 4; ++i) a[i] = factors[(lane + 32 * i) % 128];
#pragma unroll
  for (int i = 0; i < 2 * CHAINS; ++i) b[i] = factors[(lane * 3 + i) % 128];
  float sum[CHAINS][4] = {};
  for (int step = 0; step < STEPS; ++step)
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) mma(sum[c], a, b[2 * c], b[2 * c + 1]);
  float total = 0.0f;
#pragma unroll
  for (int c = 0; c < CHAINS; ++c)
    total += sum[c][0] + sum[c][1] + sum[c][2] + sum[c][3];
  out[(size_t)blockIdx.x * blockDim.x + threadIdx.x] = total;
}
// --8<-- [end:kernel]
