// Blocks of a cluster run at the same time on SMs near to each other, and each
// can read the shared memory of the others: what that takes in PTX, from sm_90
// on.
#pragma once

// --8<-- [start:cluster]
// Where block `rank` of the cluster has what this block has at `at`, in shared
// memory.
__device__ __forceinline__ unsigned in_block(const void* at, int rank) {
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(there)
      : "r"((unsigned)__cvta_generic_to_shared(at)), "r"(rank));
  return there;
}
__device__ __forceinline__ float2 load_pair(unsigned there) {
  float2 pair;
  asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];"
               : "=f"(pair.x), "=f"(pair.y)
               : "r"(there)
               : "memory");
  return pair;
}

// A barrier for all threads of the cluster, in two halves: who waits sees what
// the others had written, and knows that they had read, when they arrived.
__device__ __forceinline__ void arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void wait_for_cluster() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// --8<-- [end:cluster]
