// Sums whose last step is one atomic addition per block.
//
//   sum_atomic   the walk of rung 8, then the atomic addition
//   sum_linear   the plan of a course: a tree, then the atomic addition
#ifndef ELEMENT
#define ELEMENT float  // or int
#endif
using T = ELEMENT;

constexpr int BLOCK = 256;

// out[0] += sum of in[0 .. n), by one atomic addition per block, in the order
// in which blocks finish.
// --8<-- [start:atomic]
extern "C" __global__ void sum_atomic(const T* __restrict__ in,
                                      T* __restrict__ out, long long n) {
  __shared__ T of_warp[BLOCK / 32];
  T sum = T(0);
  const long long stride = (long long)gridDim.x * BLOCK;
  for (long long i = (long long)blockIdx.x * BLOCK + threadIdx.x; i < n;
       i += stride)
    sum += in[i];
  for (int half = 16; half > 0; half /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, half);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < BLOCK / 32; ++w) sum += of_warp[w];
    atomicAdd(out, sum);  // the first to come is added first
  }
}
// --8<-- [end:atomic]

// The plan of cudaSum_linear_kernel in the CS179 notes: a tree that halves,
// then one atomic addition.
// --8<-- [start:linear]
extern "C" __global__ void sum_linear(const int* __restrict__ in,
                                      int* __restrict__ out, int n) {
  extern __shared__ int sums[];
  const int t = threadIdx.x;
  const long long i = (long long)blockIdx.x * blockDim.x + t;
  sums[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  if (t == 0) atomicAdd(out, sums[0]);
}
// --8<-- [end:linear]
