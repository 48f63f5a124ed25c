// Exercise 2: the walk, with four loads in each turn and four sums that do not
// wait for each other.
// @rung kernel=reduce_four_sums block=256 blocks=64,128,256,512,1024 grid=resident
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

// out[b] = sum of the elements that block b meets on its walk.
// --8<-- [start:kernel]
extern "C" __global__ void reduce_four_sums(const T* __restrict__ in,
                                            T* __restrict__ out, long long n) {
  __shared__ T of_warp[BLOCK / 32];
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  const long long stride = (long long)gridDim.x * BLOCK;
  long long i = (long long)blockIdx.x * BLOCK + threadIdx.x;
  T sums[4] = {};
  for (; i + 3 * stride < n; i += 4 * stride) {
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[k] += in[i + k * stride];
  }
  for (; i < n; i += stride) sums[0] += in[i];  // fewer than four are left
  T sum = cg::reduce(warp, (sums[0] + sums[1]) + (sums[2] + sums[3]),
                     cg::plus<T>());
  if (warp.thread_rank() == 0) of_warp[warp.meta_group_rank()] = sum;
  block.sync();
  if (warp.meta_group_rank() == 0) {
    sum = warp.thread_rank() < BLOCK / 32 ? of_warp[warp.thread_rank()] : T(0);
    sum = cg::reduce(warp, sum, cg::plus<T>());
    if (warp.thread_rank() == 0) out[blockIdx.x] = sum;
  }
}
// --8<-- [end:kernel]
