// Tried for rung 9: resident blocks draw the next tile, so that tiles are read
// in the order of memory, as with one block per tile. Which block adds which
// tile then changes from run to run, and so do the sums of floats.
// @rung kernel=reduce_limit_draw block=1024 blocks=64,128,256,512,1024 vectors=4 grid=resident launches=one
#include "reduction/ladder/limit.cu"

// ticket: two words, 0 before the first launch.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(BLOCK)
    reduce_limit_draw(const T* __restrict__ in, T* __restrict__ out,
                      long long n, T* __restrict__ partials,
                      unsigned* __restrict__ ticket) {
  __shared__ unsigned drawn;
  const long long vectors = n / PER_VECTOR, tile = BLOCK * VECTORS;
  T sum = T(0);
  for (long long t = blockIdx.x; t * tile < vectors; t = drawn) {
    __syncthreads();    // all threads know t: the word is free
    unsigned next = 0;  // drawn before the data come, used after them
    if (threadIdx.x == 0) next = gridDim.x + atomicAdd(ticket + 1, 1u);
    sum += tile_sum(reinterpret_cast<const Vector*>(in), t * tile + threadIdx.x,
                    vectors);
    if (threadIdx.x == 0) drawn = next;
    __syncthreads();
  }
  const long long tail = vectors * PER_VECTOR + threadIdx.x;
  if (blockIdx.x == 0 && tail < n) sum += in[tail];
  sum = block_sum(sum);
  if (last_block(sum, partials, ticket)) {
    sum = block_sum(partials_sum(partials, gridDim.x));
    if (threadIdx.x == 0) {
      out[0] = sum;
      ticket[1] = 0;  // for the next launch
    }
  }
}
// --8<-- [end:kernel]
