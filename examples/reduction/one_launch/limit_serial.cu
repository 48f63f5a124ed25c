// Tried for rung 9: the last block loads the partial sums one by one.
// @rung kernel=reduce_limit_serial block=1024 blocks=256,512,1024 vectors=4 grid=tiles launches=one
#include "reduction/ladder/limit.cu"

// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(BLOCK)
    reduce_limit_serial(const T* __restrict__ in, T* __restrict__ out,
                        long long n, T* __restrict__ partials,
                        unsigned* __restrict__ ticket) {
  const long long vectors = n / PER_VECTOR;
  const long long first =
      (long long)blockIdx.x * (BLOCK * VECTORS) + threadIdx.x;
  T sum = tile_sum(reinterpret_cast<const Vector*>(in), first, vectors);
  const long long tail = vectors * PER_VECTOR + threadIdx.x;
  if (blockIdx.x == 0 && tail < n) sum += in[tail];
  sum = block_sum(sum);
  if (last_block(sum, partials, ticket)) {
    sum = T(0);
#pragma unroll 1  // one load of 4 bytes, and the wait for it
    for (int b = threadIdx.x; b < gridDim.x; b += BLOCK)
      sum += __ldcg(partials + b);
    sum = block_sum(sum);
    if (threadIdx.x == 0) out[0] = sum;
  }
}
// --8<-- [end:kernel]
