// Rung 6: inside a warp the partial sums travel from register to register.
// @rung 60 kernel=reduce_shuffle block=256 blocks=32,64,128,256,512,1024 per_thread=2
#ifndef ELEMENT
#define ELEMENT float  // or int
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
using T = ELEMENT;

// Sum over the 32 lanes of a warp; only lane 0 holds it. All lanes have to call
// it.
// --8<-- [start:warp]
__device__ __forceinline__ T warp_sum(T sum) {
#pragma unroll
  for (int half = 16; half > 0; half /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, half);
  return sum;
}
// --8<-- [end:warp]

// Sum over the block; only thread 0 holds it.
// --8<-- [start:block]
__device__ __forceinline__ T block_sum(T sum) {
  __shared__ T of_warp[BLOCK / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  sum = warp_sum(sum);
  if (lane == 0) of_warp[warp] = sum;
  __syncthreads();  // the only barrier that is left
  if (warp == 0) sum = warp_sum(lane < BLOCK / 32 ? of_warp[lane] : T(0));
  return sum;
}
// --8<-- [end:block]

// out[b] = sum of the 2 * BLOCK elements that belong to block b; elements past
// n count as 0.
// --8<-- [start:kernel]
extern "C" __global__ void reduce_shuffle(const T* __restrict__ in,
                                          T* __restrict__ out, long long n) {
  const long long i = (long long)blockIdx.x * (2 * BLOCK) + threadIdx.x;
  T sum = i < n ? in[i] : T(0);
  if (i + BLOCK < n) sum += in[i + BLOCK];
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
// --8<-- [end:kernel]
