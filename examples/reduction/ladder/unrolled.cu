// Rung 5: the loop unrolled, and the last warp on its own, ordered by
// __syncwarp instead of __syncthreads.
// @rung 50 kernel=reduce_unrolled block=256 blocks=64,128,256,512,1024 per_thread=2
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
extern "C" __global__ void reduce_unrolled(const T* __restrict__ in,
                                           T* __restrict__ out, long long n) {
  __shared__ T sums[BLOCK];
  const int t = threadIdx.x;
  const long long i = (long long)blockIdx.x * (2 * BLOCK) + t;
  T sum = i < n ? in[i] : T(0);
  if (i + BLOCK < n) sum += in[i + BLOCK];
  sums[t] = sum;
  __syncthreads();
  // --8<-- [start:loop]
#pragma unroll  // BLOCK is a constant: the compiler writes every step out
  for (int half = BLOCK / 2; half >= 32; half /= 2) {
    if (t < half) sums[t] = sum = sum + sums[t + half];
    __syncthreads();
  }
  // --8<-- [end:loop]
  // --8<-- [start:warp]
  if (t < 32) {
#pragma unroll
    for (int half = 16; half > 0; half /= 2) {
      const T right = sums[(t + half) % 32];  // every lane reads ...
      __syncwarp();                           // ... before any lane writes,
      sums[t] = sum = sum + right;
      __syncwarp();  // and every lane has written before the next step reads
    }
    if (t == 0) out[blockIdx.x] = sum;
  }
  // --8<-- [end:warp]
}
// --8<-- [end:kernel]
