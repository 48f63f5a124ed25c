// The tree of rung 1 with the same threads at work; a mask picks them in the
// place of the modulo.
// @rung kernel=reduce_mask block=256 blocks=32,64,128,256,512,1024 per_thread=1
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
extern "C" __global__ void reduce_mask(const T* __restrict__ in,
                                       T* __restrict__ out, long long n) {
  __shared__ T sums[BLOCK];
  const int t = threadIdx.x, block = blockDim.x;
  const long long i = (long long)blockIdx.x * BLOCK + t;
  sums[t] = i < n ? in[i] : T(0);
  __syncthreads();
  // --8<-- [start:loop]
  for (int step = 1; step < block; step *= 2) {
    if ((t & (2 * step - 1)) == 0)
      sums[t] += sums[t + step];  // 2 * step is a power of two
    __syncthreads();
  }
  // --8<-- [end:loop]
  if (t == 0) out[blockIdx.x] = sums[0];
}
// --8<-- [end:kernel]
