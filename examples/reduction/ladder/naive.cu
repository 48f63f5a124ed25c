// Rung 1: a tree in shared memory, with the pairs picked by a modulo.
// @rung 10 kernel=reduce_naive block=256 blocks=32,64,128,256,512,1024 per_thread=1
#ifndef ELEMENT
#define ELEMENT float  // or int
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
using T = ELEMENT;

// out[b] = sum of the BLOCK elements that belong to block b; elements past n
// count as 0.
// --8<-- [start:kernel]
extern "C" __global__ void reduce_naive(const T* __restrict__ in,
                                        T* __restrict__ out, long long n) {
  __shared__ T sums[BLOCK];
  const int t = threadIdx.x, block = blockDim.x;
  const long long i = (long long)blockIdx.x * BLOCK + t;
  sums[t] = i < n ? in[i] : T(0);
  __syncthreads();
  // --8<-- [start:loop]
  for (int step = 1; step < block; step *= 2) {
    if (t % (2 * step) == 0) sums[t] += sums[t + step];
    __syncthreads();  // outside the branch: every thread of the block has to
                      // reach it
  }
  // --8<-- [end:loop]
  if (t == 0) out[blockIdx.x] = sums[0];
}
// --8<-- [end:kernel]
