// Rung 8: the block that finishes last adds up what the others left, so that
// one launch is enough.
// @rung 80 kernel=reduce_one_launch block=256 blocks=64,128,256,512,1024 grid=resident launches=one
#ifndef ELEMENT
#define ELEMENT float  // or int
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
using T = ELEMENT;

__device__ __forceinline__ T warp_sum(T sum) {
#pragma unroll
  for (int half = 16; half > 0; half /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, half);
  return sum;
}

// Sum over the block; only thread 0 holds it. Ends with every thread past its
// use of shared memory.
__device__ __forceinline__ T block_sum(T sum) {
  __shared__ T of_warp[BLOCK / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  sum = warp_sum(sum);
  if (lane == 0) of_warp[warp] = sum;
  __syncthreads();
  if (warp == 0) sum = warp_sum(lane < BLOCK / 32 ? of_warp[lane] : T(0));
  // The last block calls it twice: of_warp must not be overwritten while it is
  // read.
  __syncthreads();
  return sum;
}

// True in every thread of exactly one block: the one that arrives last. Before,
// `partial` of thread 0 is published; after, the partial sums of all blocks can
// be read. Leaves the ticket at 0 for the next launch.
// --8<-- [start:last]
__device__ __forceinline__ bool last_block(T partial, T* __restrict__ partials,
                                           unsigned* __restrict__ ticket) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = partial;
    __threadfence();  // who sees the ticket drawn also sees the partial sum
    last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
    if (last) __threadfence();  // no partial sum is read before the ticket
  }
  __syncthreads();  // what holds for thread 0 then holds for its block
  return last;
}
// --8<-- [end:last]

// out[0] = sum of in[0 .. n). partials: one element per block. ticket: 0 before
// the first launch. Launches that may overlap need a ticket and partial sums of
// their own. Which block is last changes from run to run, but not the
// order in which it adds: the sum does not change.
// --8<-- [start:kernel]
extern "C" __global__ void reduce_one_launch(const T* __restrict__ in,
                                             T* __restrict__ out, long long n,
                                             T* __restrict__ partials,
                                             unsigned* __restrict__ ticket) {
  T sum = T(0);
  const long long stride = (long long)gridDim.x * BLOCK;
  for (long long i = (long long)blockIdx.x * BLOCK + threadIdx.x; i < n;
       i += stride)
    sum += in[i];
  sum = block_sum(sum);
  if (last_block(sum, partials, ticket)) {
    sum = T(0);
    for (int b = threadIdx.x; b < gridDim.x; b += BLOCK)
      sum += __ldcg(partials + b);
    sum = block_sum(sum);
    if (threadIdx.x == 0) out[0] = sum;
  }
}
// --8<-- [end:kernel]
