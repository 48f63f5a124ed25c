// Blocks of a cluster: they run at the same time on neighboring SMs, and reach
// each other's shared memory.
//
//   rank_in_cluster           this block's number in its cluster
//   arrive, wait_for_cluster  the halves of a barrier of the whole cluster
//   sync_cluster              both halves
//   load_pair                 two floats of another block's shared memory
//   in_block                  an address in another block's shared memory
//   arrive_in                 arrives at a barrier of another block
//   meet_cluster              sync_cluster, right after fence_init
#pragma once
#include "mbarrier.cuh"

// This block's number in its cluster: 0, 1, ...
//
// PTX ISA: %cluster_ctarank
__device__ __forceinline__ unsigned rank_in_cluster() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// --8<-- [start:memory]
// --8<-- [start:barrier]
// A barrier of all threads of the cluster in two halves. A thread behind the
// wait sees all that other threads wrote before they arrived, into the shared
// memory of any block of the cluster, and knows that their earlier reads are
// done.
//
// PTX ISA: barrier.cluster
__device__ __forceinline__ void arrive() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
__device__ __forceinline__ void wait_for_cluster() {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
__device__ __forceinline__ void sync_cluster() {
  arrive();
  wait_for_cluster();
}
// --8<-- [end:barrier]

// Two floats at an address that `in_block` has given.
//
// PTX ISA: ld
__device__ __forceinline__ float2 load_pair(unsigned there) {
  float2 pair;
  asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];"
               : "=f"(pair.x), "=f"(pair.y)
               : "r"(there)
               : "memory");
  return pair;
}

// --8<-- [start:cluster]
// The address at which block `rank` of the cluster has what this block has at
// `at` in its shared memory.
//
// PTX ISA: mapa
__device__ __forceinline__ unsigned in_block(const void* at, unsigned rank) {
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(there)
      : "r"(shared_address(at)), "r"(rank));
  return there;
}
// --8<-- [end:memory]

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
// PTX ISA: mbarrier.arrive
__device__ __forceinline__ void arrive_in(Barrier* barrier, unsigned rank) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(
                   in_block(barrier, rank))
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
