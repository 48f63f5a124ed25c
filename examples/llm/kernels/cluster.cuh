// What a kernel needs to work as a cluster, in PTX (sm_90 and later). The
// blocks of a cluster run at the same time on SMs near to each other, and each
// can read the shared memory of the others.
//
//   in_block           an address in the shared memory of another block
//   load_pair          two floats from there
//   arrive             the first half of a barrier for the whole cluster
//   wait_for_cluster   the second half
#pragma once

// --8<-- [start:cluster]
// The address at which block `rank` of the cluster has what this block has at
// `at` in its shared memory.
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

// A barrier for all threads of the cluster in two halves. A thread behind the
// wait sees all that other threads wrote before they arrived, and knows that
// their earlier reads are done.
__device__ __forceinline__ void arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void wait_for_cluster() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// --8<-- [end:cluster]
