// Exercise 1: the loop of rung 1, unrolled, so that every modulo has a constant
// on its right.
// @rung kernel=reduce_constant block=256 blocks=32,64,128,256,512,1024 per_thread=1
#ifndef ELEMENT
#define ELEMENT float  // or int
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
using T = ELEMENT;

// --8<-- [start:kernel]
extern "C" __global__ void reduce_constant(const T* __restrict__ in,
                                           T* __restrict__ out, long long n) {
  __shared__ T sums[BLOCK];
  const unsigned t =
      threadIdx.x;  // unsigned: no sign to put right after the modulo
  const long long i = (long long)blockIdx.x * BLOCK + t;
  sums[t] = i < n ? in[i] : T(0);
  __syncthreads();
#pragma unroll  // BLOCK is a constant, so is every step
  for (unsigned step = 1; step < BLOCK; step *= 2) {
    if (t % (2 * step) == 0) sums[t] += sums[t + step];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
// --8<-- [end:kernel]
