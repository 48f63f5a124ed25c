// A short array by the blocks of one cluster, which tell each other their sums
// through shared memory. Nothing of it goes through L2.
// requires: sm_90
#include "primitives/scan/tiles.cuh"
#include "ptx/cluster.cuh"

#ifndef BLOCKS
#define BLOCKS 8  // of the cluster
#endif

// A word into another block's shared memory.
//
// PTX ISA: st
__device__ __forceinline__ void send(unsigned there, unsigned bits) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(bits)
               : "memory");
}
__device__ __forceinline__ void send(unsigned there, unsigned long long bits) {
  asm volatile("st.shared::cluster.u64 [%0], %1;" ::"r"(there), "l"(bits)
               : "memory");
}

// out: sums of in[0 .. n), n <= BLOCKS * TILE. Grid: BLOCKS.
// --8<-- [start:kernel]
extern "C" __global__ void __cluster_dims__(BLOCKS) __launch_bounds__(BLOCK)
    scan_cluster(const T* __restrict__ in, T* __restrict__ out, long long n) {
  __shared__ T of_warp[WARPS], of_block[BLOCKS];
  const unsigned rank = rank_in_cluster();
  arrive();  // this block has begun: its shared memory is there
  Vector v[VECTORS];
  T before[VECTORS], sum;
  load_rows(in, rank, n, v);
  const T rows = scan_rows(v, before);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = rows;
  __syncthreads();
  T found = before_warp(of_warp, sum);
  wait_for_cluster();
  if (threadIdx.x < BLOCKS) {
    const unsigned there = in_block(of_block + rank, threadIdx.x);
    if constexpr (sizeof(T) == 8)
      send(there, reinterpret_cast<const unsigned long long&>(sum));
    else
      send(there, reinterpret_cast<const unsigned&>(sum));
  }
  sync_cluster();
  T blocks = T(0);
#pragma unroll
  for (int b = 0; b < BLOCKS; ++b)
    if (b < rank) blocks += of_block[b];
  finish_rows(v, before, blocks + found);
  store_rows(out, rank, n, v);
}
// --8<-- [end:kernel]
