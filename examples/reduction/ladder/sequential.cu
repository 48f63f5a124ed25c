// Rung 3: neighboring threads add neighboring words, so that no two lanes meet
// in a bank.
// @rung 30 kernel=reduce_sequential block=256 blocks=32,64,128,256,512,1024 per_thread=1
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
extern "C" __global__ void reduce_sequential(const T* __restrict__ in,
                                             T* __restrict__ out, long long n) {
  __shared__ T sums[BLOCK];
  const int t = threadIdx.x, block = blockDim.x;
  const long long i = (long long)blockIdx.x * BLOCK + t;
  sums[t] = i < n ? in[i] : T(0);
  __syncthreads();
  // --8<-- [start:loop]
  for (int half = block / 2; half > 0; half /= 2) {
    if (t < half)
      sums[t] += sums[t + half];  // lane k touches word k: one bank each
    __syncthreads();
  }
  // --8<-- [end:loop]
  if (t == 0) out[blockIdx.x] = sums[0];
}
// --8<-- [end:kernel]
