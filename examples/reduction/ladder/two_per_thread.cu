// Rung 4: every thread adds two elements while it loads them, so that no thread
// only loads.
// @rung 40 kernel=reduce_two_per_thread block=256 blocks=32,64,128,256,512,1024 per_thread=2
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
extern "C" __global__ void reduce_two_per_thread(const T* __restrict__ in,
                                                 T* __restrict__ out,
                                                 long long n) {
  __shared__ T sums[BLOCK];
  const int t = threadIdx.x, block = blockDim.x;
  // --8<-- [start:load]
  const long long i = (long long)blockIdx.x * (2 * BLOCK) + t;
  T sum = i < n ? in[i] : T(0);
  if (i + BLOCK < n)
    sum += in[i + BLOCK];  // its own bound: the tail may end between the two
  sums[t] = sum;
  // --8<-- [end:load]
  __syncthreads();
  for (int half = block / 2; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
// --8<-- [end:kernel]
