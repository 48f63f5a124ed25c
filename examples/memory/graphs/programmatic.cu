// A chain of kernels in which each may begin while the one before still runs.
//
//   layer    reads weights of its own, then what the kernel before has written
//   late     lets the next kernel begin at once, and writes long afterwards
//   passing  passes on what `late` has written
//
// WAIT: 0 leaves the wait out, which is wrong, and is there to be noticed.
#include "ptx/overlap.cuh"

#ifndef WAIT
#define WAIT 1
#endif

// --8<-- [start:layer]
// out[i] = in[i] + the sum of the weights of this thread. The weights come in
// `rows` rows of n numbers; no kernel of the chain writes them.
extern "C" __global__ void layer(const float* __restrict__ weights,
                                 const float* in, float* out, int n, int rows) {
  begin_next();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  if (i < n) {
#pragma unroll 8
    for (int row = 0; row < rows; ++row) sum += weights[row * n + i];
  }
#if WAIT
  wait_for_previous();
#endif
  if (i < n) out[i] = in[i] + sum;
}
// --8<-- [end:layer]

// --8<-- [start:late]
// One block. The next kernel may begin at once; `ns` later this one writes.
extern "C" __global__ void late(int* x, int value, int ns) {
  begin_next();
  wait_for_previous();
  long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < ns);
  x[threadIdx.x] = value;
}

extern "C" __global__ void passing(const int* x, int* out) {
  begin_next();
#if WAIT
  wait_for_previous();
#endif
  out[threadIdx.x] = x[threadIdx.x];
}
// --8<-- [end:late]
