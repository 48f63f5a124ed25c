// Exercise 1: PER_THREAD elements per thread, each with its own bound.
// @rung kernel=reduce_several block=256 blocks=32,64,128,256,512,1024 per_thread=8
#ifndef ELEMENT
#define ELEMENT float  // or int
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef PER_THREAD
#define PER_THREAD 8  // as the line above says
#endif
using T = ELEMENT;

// --8<-- [start:kernel]
extern "C" __global__ void reduce_several(const T* __restrict__ in,
                                          T* __restrict__ out, long long n) {
  __shared__ T sums[BLOCK];
  const int t = threadIdx.x;
  const long long i = (long long)blockIdx.x * (PER_THREAD * BLOCK) + t;
  T sum = T(0);
#pragma unroll  // all loads may start before the first addition waits
  for (int k = 0; k < PER_THREAD; ++k)
    if (i + k * BLOCK < n) sum += in[i + k * BLOCK];
  sums[t] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
// --8<-- [end:kernel]
