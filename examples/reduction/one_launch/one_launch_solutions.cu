// Exercise 1: rung 8 with loads of 16 bytes. Everything else stays as it was.
// @rung kernel=reduce_wide block=256 blocks=64,128,256,512,1024 grid=resident launches=one
#ifndef ELEMENT
#define ELEMENT float  // or int
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
using T = ELEMENT;

struct alignas(16) Four {
  T a, b, c, d;
};

__device__ __forceinline__ T warp_sum(T sum) {
#pragma unroll
  for (int half = 16; half > 0; half /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, half);
  return sum;
}

__device__ __forceinline__ T block_sum(T sum) {
  __shared__ T of_warp[BLOCK / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  sum = warp_sum(sum);
  if (lane == 0) of_warp[warp] = sum;
  __syncthreads();
  if (warp == 0) sum = warp_sum(lane < BLOCK / 32 ? of_warp[lane] : T(0));
  __syncthreads();
  return sum;
}

// out[0] = sum of in[0 .. n); in is aligned to 16 bytes.
// --8<-- [start:kernel]
extern "C" __global__ void reduce_wide(const T* __restrict__ in,
                                       T* __restrict__ out, long long n,
                                       T* __restrict__ partials,
                                       unsigned* __restrict__ ticket) {
  __shared__ bool last;
  const long long me = (long long)blockIdx.x * BLOCK + threadIdx.x;
  const long long stride = (long long)gridDim.x * BLOCK, fours = n / 4;
  const Four* wide = reinterpret_cast<const Four*>(in);
  T sum = T(0);
  for (long long i = me; i < fours; i += stride) {
    const Four v = wide[i];
    sum += (v.a + v.b) + (v.c + v.d);
  }
  if (4 * fours + me < n)
    sum += in[4 * fours + me];  // the last one, two or three
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  sum = T(0);
  for (int b = threadIdx.x; b < gridDim.x; b += BLOCK)
    sum += __ldcg(partials + b);
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[0] = sum;
}
// --8<-- [end:kernel]
