// Blocks of a cluster: they run at the same time on neighboring SMs, and reach
// each other's shared memory.
#pragma once
#include "mbarrier.cuh"

// --8<-- [start:cluster]
// PTX ISA: %cluster_ctarank
__device__ __forceinline__ unsigned rank_in_cluster() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// A barrier of all threads of the cluster; what they wrote before it to the
// shared memory of any of its blocks is there after it.
//
// PTX ISA: barrier.cluster
__device__ __forceinline__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

// Arrive at the barrier that lies at the same place in another block of the
// cluster, or in this one.
//
// Without `.release.cluster`: that would order all ordinary memory of this
// thread for the whole cluster, and becomes a fence of the whole GPU in front
// of every arrival, hundreds of cycles. There is nothing to order where a
// consumer gives a stage back: only wgmma has read it, and its products have
// ended before; and only the TMA writes it again.
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
// `sync_cluster` right after `fence_init`, which has already ordered what has
// to be: the blocks may use each other's barriers after it.
//
// PTX ISA: barrier.cluster
__device__ __forceinline__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
// --8<-- [end:meet]
