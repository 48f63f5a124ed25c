// Solutions: a largest float by atomics on integers, and a histogram with as
// many copies as fit.
#include <stdint.h>

#ifndef BINS
#define BINS 1024
#endif
#ifndef COPIES
#define COPIES 8
#endif

// Floats as integers in the same order: those of positive numbers grow with the
// number, those of negative ones shrink. Flip the sign of the former and all
// bits of the latter.
// --8<-- [start:largest]
__device__ unsigned key_of(float x) {
  const unsigned bits = __float_as_uint(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

extern "C" __global__ void largest(const float* in, unsigned* out, int n) {
  unsigned best = 0;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n;
       i += (long long)gridDim.x * blockDim.x)
    best = max(best, key_of(in[i]));
  // A warp agrees first: one atomic where 32 would meet.
  for (int distance = 16; distance > 0; distance /= 2)
    best = max(best, __shfl_xor_sync(0xffffffffu, best, distance));
  if (threadIdx.x % 32 == 0) atomicMax(out, best);
}
// --8<-- [end:largest]

// Counter (bin, copy) is word COPIES * bin + copy: a lane's copy decides which
// banks it can meet.
// --8<-- [start:copies]
extern "C" __global__ void histogram_copies(const uint16_t* in,
                                            unsigned* counts, int n) {
  extern __shared__ unsigned mine[];
  for (int word = threadIdx.x; word < BINS * COPIES; word += blockDim.x)
    mine[word] = 0;
  __syncthreads();
  unsigned* const copy = mine + threadIdx.x % COPIES;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n;
       i += (long long)gridDim.x * blockDim.x)
    atomicAdd(copy + COPIES * in[i], 1u);
  __syncthreads();
  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
    unsigned sum = 0;
    for (int k = 0; k < COPIES; ++k)
      sum += mine[COPIES * bin + (bin + k) % COPIES];
    if (sum) atomicAdd(counts + bin, sum);
  }
}
// --8<-- [end:copies]
