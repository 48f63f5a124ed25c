// Exercise 2: the last warp with fewer instructions, by lanes that need no
// modulo.
// @rung kernel=reduce_lean block=256 blocks=64,128,256,512,1024 per_thread=2
#ifndef ELEMENT
#define ELEMENT float  // or int
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
using T = ELEMENT;

// --8<-- [start:kernel]
extern "C" __global__ void reduce_lean(const T* __restrict__ in,
                                       T* __restrict__ out, long long n) {
  __shared__ T sums[BLOCK];
  const unsigned t = threadIdx.x;  // unsigned: t % 32 is one AND
  const long long i = (long long)blockIdx.x * (2 * BLOCK) + t;
  T sum = i < n ? in[i] : T(0);
  if (i + BLOCK < n) sum += in[i + BLOCK];
  sums[t] = sum;
  __syncthreads();
#pragma unroll
  for (unsigned half = BLOCK / 2; half >= 32; half /= 2) {
    if (t < half) sums[t] = sum = sum + sums[t + half];
    __syncthreads();
  }
  if (t < 32) {
#pragma unroll
    for (unsigned half = 16; half > 0; half /= 2) {
      // The partner in this step; below 32 without a modulo.
      const T right = sums[t ^ half];
      __syncwarp();
      sums[t] = sum = sum + right;
      __syncwarp();
    }
    if (t == 0) out[blockIdx.x] = sum;
  }
}
// --8<-- [end:kernel]
