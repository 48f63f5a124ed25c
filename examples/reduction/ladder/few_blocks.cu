// Rung 7: as many blocks as the GPU holds at once walk the whole array;
// cooperative groups do the rest.
// @rung 70 kernel=reduce_few_blocks block=256 blocks=64,128,256,512,1024 grid=resident
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#ifndef ELEMENT
#define ELEMENT float  // or int
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
using T = ELEMENT;

namespace cg = cooperative_groups;

// out[b] = sum of the elements that block b meets on its walk: one per block,
// however long the array.
// --8<-- [start:kernel]
extern "C" __global__ void reduce_few_blocks(const T* __restrict__ in,
                                             T* __restrict__ out, long long n) {
  __shared__ T of_warp[BLOCK / 32];
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  // --8<-- [start:walk]
  T sum = T(0);
  const long long stride = (long long)gridDim.x * BLOCK;
  for (long long i = (long long)blockIdx.x * BLOCK + threadIdx.x; i < n;
       i += stride)
    sum += in[i];
  // --8<-- [end:walk]
  // --8<-- [start:groups]
  sum = cg::reduce(warp, sum, cg::plus<T>());
  if (warp.thread_rank() == 0) of_warp[warp.meta_group_rank()] = sum;
  block.sync();
  if (warp.meta_group_rank() == 0) {
    sum = warp.thread_rank() < BLOCK / 32 ? of_warp[warp.thread_rank()] : T(0);
    sum = cg::reduce(warp, sum, cg::plus<T>());
    if (warp.thread_rank() == 0) out[blockIdx.x] = sum;
  }
  // --8<-- [end:groups]
}
// --8<-- [end:kernel]
