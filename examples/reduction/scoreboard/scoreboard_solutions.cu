// Exercise 1: rung 7 with a compensated walk. Integers lose nothing: for them
// this is a plain sum.
// @rung kernel=reduce_kahan block=256 blocks=64,128,256,512,1024 grid=resident
#ifndef ELEMENT
#define ELEMENT float  // or int
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
using T = ELEMENT;

// Sum over the block; only thread 0 gets it.
__device__ __forceinline__ T block_sum(T sum) {
  __shared__ T of_warp[BLOCK / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int half = 16; half > 0; half /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, half);
  if (lane == 0) of_warp[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = lane < BLOCK / 32 ? of_warp[lane] : T(0);
#pragma unroll
    for (int half = 16; half > 0; half /= 2)
      sum += __shfl_down_sync(0xffffffffu, sum, half);
  }
  return sum;
}

// out[b] = sum of the elements that block b meets on its walk.
// --8<-- [start:kernel]
extern "C" __global__ void reduce_kahan(const T* __restrict__ in,
                                        T* __restrict__ out, long long n) {
  T sum = T(0), lost = T(0);
  const long long stride = (long long)gridDim.x * BLOCK;
  for (long long i = (long long)blockIdx.x * BLOCK + threadIdx.x; i < n;
       i += stride) {
    const T term = in[i] - lost;
    const T next = sum + term;
    lost = (next - sum) - term;
    sum = next;
  }
  sum = block_sum(isfinite(float(lost)) ? sum - lost
                                        : sum);  // an infinite sum has lost NaN
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
// --8<-- [end:kernel]
