// Sending to another block of the cluster, which then reads its own shared
// memory.
//
//   arrive_early    the first half of a barrier of the cluster, where no writes
//                   have to be shown
//   expect_pairs    initializes a barrier that waits for so many pairs
//   send_pair       two floats into another block's shared memory
//   wait_for_pairs  until all that were announced have come
#pragma once
#include "cluster.cuh"

// --8<-- [start:push]
// The first half of a barrier of the cluster for threads whose writes the
// others need not see yet; `expect_pairs` has shown the mbarrier already.
// `arrive` would wait until the whole GPU sees what the thread has accessed.
//
// PTX ISA: barrier.cluster
__device__ __forceinline__ void arrive_early() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

// Initialize a barrier of this block, which waits for so many pairs. One thread
// calls this, before it arrives at the barrier of the cluster behind which the
// pairs are sent.
//
// PTX ISA: fence
__device__ __forceinline__ void expect_pairs(Barrier* barrier, int pairs) {
  init(barrier, 1);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  arrive_and_expect(barrier, pairs * sizeof(float2));
}

// Send two floats to an address in a block of the cluster, a multiple of 8.
// They count as 8 bytes at `barrier`, which is in the same block, when they are
// there. `in_block` gives both addresses. The thread does not wait.
//
// PTX ISA: st.async
__device__ __forceinline__ void send_pair(unsigned there, float2 pair,
                                          unsigned barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], "
      "{%1, %2}, [%3];" ::"r"(there),
      "f"(pair.x), "f"(pair.y), "r"(barrier)
      : "memory");
}

// Wait until all pairs have come that this block's barrier expects: as `wait`,
// but what other blocks have sent is seen, too. Only for the first phase, so a
// barrier serves once.
//
// PTX ISA: mbarrier.try_wait
__device__ __forceinline__ void wait_for_pairs(Barrier* barrier) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again_%=:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], 0;"
      "\n@!done bra again_%=; }" ::"r"(shared_address(barrier))
      : "memory");
}
// --8<-- [end:push]
