// Tried for rung 9: resident blocks walk from tile to tile, in the place of one
// block per tile.
// @rung kernel=reduce_limit_walk block=1024 blocks=64,128,256,512,1024 vectors=4 grid=resident launches=one
#include "reduction/ladder/limit.cu"

// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(BLOCK)
    reduce_limit_walk(const T* __restrict__ in, T* __restrict__ out,
                      long long n, T* __restrict__ partials,
                      unsigned* __restrict__ ticket) {
  const long long vectors = n / PER_VECTOR, tile = BLOCK * VECTORS;
  T sum = T(0);
  for (long long at = blockIdx.x * tile; at < vectors; at += gridDim.x * tile)
    sum += tile_sum(reinterpret_cast<const Vector*>(in), at + threadIdx.x,
                    vectors);
  const long long tail = vectors * PER_VECTOR + threadIdx.x;
  if (blockIdx.x == 0 && tail < n) sum += in[tail];
  sum = block_sum(sum);
  if (last_block(sum, partials, ticket)) {
    sum = block_sum(partials_sum(partials, gridDim.x));
    if (threadIdx.x == 0) out[0] = sum;
  }
}
// --8<-- [end:kernel]
