// Three launches: the sum of each tile, the scan of these sums, and the scan of
// each tile with what precedes it. Of n elements 2 n are read and n written.
#include "primitives/scan/tiles.cuh"

__shared__ T of_warp[WARPS];

// sums[t] = the sum of tile t. One block for each tile.
// --8<-- [start:sums]
extern "C" __global__ void __launch_bounds__(BLOCK)
    sum_tiles(const T* __restrict__ in, T* __restrict__ sums, long long n) {
  Vector v[VECTORS];
  load_rows(in, blockIdx.x, n, v);
  T sum = T(0), total;
#pragma unroll
  for (int k = 0; k < VECTORS; ++k)
#pragma unroll
    for (int i = 0; i < PER_VECTOR; ++i) sum += v[k].at[i];
  sum = from(warp_inclusive(sum), 31);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  before_warp(of_warp, total);
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}
// --8<-- [end:sums]

// Each of the sums becomes the sum of those before it. One block.
// --8<-- [start:before]
extern "C" __global__ void __launch_bounds__(BLOCK)
    scan_sums(T* __restrict__ sums, int count) {
  T carry = T(0);
  for (int at = threadIdx.x; at - threadIdx.x < count; at += BLOCK) {
    const T x = at < count ? sums[at] : T(0);
    const T own = warp_inclusive(x), left = up(own, 1);
    if (threadIdx.x % 32 == 31) of_warp[threadIdx.x / 32] = own;
    __syncthreads();
    T total;
    const T before = carry + before_warp(of_warp, total);
    if (at < count) sums[at] = threadIdx.x % 32 ? before + left : before;
    carry += total;
    __syncthreads();  // of_warp is free again
  }
}
// --8<-- [end:before]

// out: the scan of in[0 .. n). sums[t]: what precedes tile t.
// --8<-- [start:scan]
extern "C" __global__ void __launch_bounds__(BLOCK)
    scan_tiles(const T* __restrict__ in, const T* __restrict__ sums,
               T* __restrict__ out, long long n) {
  Vector v[VECTORS];
  T before[VECTORS], total;
  load_rows(in, blockIdx.x, n, v);
  const T rows = scan_rows(v, before);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = rows;
  __syncthreads();
  finish_rows(v, before, sums[blockIdx.x] + before_warp(of_warp, total));
  store_rows(out, blockIdx.x, n, v);
}
// --8<-- [end:scan]
