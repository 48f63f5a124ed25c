// Between rungs 4 and 5: the last warp on its own, but the loop before it is
// still a loop.
// @rung kernel=reduce_last_warp block=256 blocks=64,128,256,512,1024 per_thread=2
#ifndef ELEMENT
#define ELEMENT float  // or int
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
using T = ELEMENT;

// out[b] = sum of the 2 * BLOCK elements that belong to block b; elements past
// n count as 0.
// --8<-- [start:kernel]
extern "C" __global__ void reduce_last_warp(const T* __restrict__ in,
                                            T* __restrict__ out, long long n) {
  __shared__ T sums[BLOCK];
  const int t = threadIdx.x, block = blockDim.x;
  const long long i = (long long)blockIdx.x * (2 * BLOCK) + t;
  T sum = i < n ? in[i] : T(0);
  if (i + BLOCK < n) sum += in[i + BLOCK];
  sums[t] = sum;
  __syncthreads();
  // --8<-- [start:loop]
  // block is known only when the kernel runs
  for (int half = block / 2; half >= 32; half /= 2) {
    if (t < half) sums[t] = sum = sum + sums[t + half];
    __syncthreads();
  }
  // --8<-- [end:loop]
  if (t < 32) {
#pragma unroll
    for (int half = 16; half > 0; half /= 2) {
      const T right = sums[(t + half) % 32];
      __syncwarp();
      sums[t] = sum = sum + right;
      __syncwarp();
    }
    if (t == 0) out[blockIdx.x] = sum;
  }
}
// --8<-- [end:kernel]
