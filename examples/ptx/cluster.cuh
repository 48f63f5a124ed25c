// Blocks of a cluster: they run at the same time on neighboring SMs, and reach
// each other's shared memory.
//
//   rank_in_cluster  this block's number in its cluster
//   sync_cluster     a barrier of all threads of the cluster
//   arrive_in        arrives at a barrier in another block's shared memory
//   meet_cluster     the barrier right after barriers were initialized
#pragma once
#include "mbarrier.cuh"

// --8<-- [start:cluster]
// This block's number in its cluster: 0, 1, ...
//
// PTX ISA: %cluster_ctarank
__device__ __forceinline__ unsigned rank_in_cluster() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// A barrier of all threads of the cluster. What they wrote before it into the
// shared memory of any block of the cluster is there after it.
//
// PTX ISA: barrier.cluster
__device__ __forceinline__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

// Arrive at the barrier that lies at the same place in another block of the
// cluster, or in this one.
//
// The arrival is without `.release.cluster`, which would order all ordinary
// memory accesses of this thread for the whole cluster. That becomes a fence of
// the whole GPU in front of every arrival, which takes hundreds of cycles.
// There is nothing to order where a consumer gives a stage back: only wgmma has
// read the stage, in products that have ended before, and only the TMA writes
// it again.
//
// PTX ISA: mapa
__device__ __forceinline__ void arrive_in(Barrier* barrier, unsigned rank) {
  asm volatile(
      "{ .reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(
          shared_address(barrier)),
      "r"(rank)
      : "memory");
}
// --8<-- [end:cluster]

// --8<-- [start:meet]
// The same as `sync_cluster`, for use right after `fence_init`, which has
// already ordered what has to be ordered. After it blocks may use each other's
// barriers.
//
// PTX ISA: barrier.cluster
__device__ __forceinline__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
// --8<-- [end:meet]
