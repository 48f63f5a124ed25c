// Copies of bytes in a row by the tensor memory accelerator (TMA), without a
// map. tma.cuh has those of boxes, and the groups that stores are counted in.
//
//   load_bytes   starts to copy bytes from global into shared memory
//   store_bytes  starts to copy bytes from shared into global memory
#pragma once
#include "mbarrier.cuh"

// --8<-- [start:bulk]
// Start to copy so many bytes. The number and both addresses have to be
// multiples of 16; the bytes count for the barrier.
//
// PTX ISA: cp.async.bulk
__device__ __forceinline__ void load_bytes(void* to, const void* from,
                                           int bytes, Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

// The same the other way. No barrier counts these copies: the thread that
// starts them closes groups of them, and waits for groups.
//
// PTX ISA: cp.async.bulk
__device__ __forceinline__ void store_bytes(void* to, const void* from,
                                            int bytes) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
      "r"(shared_address(from)), "r"(bytes)
      : "memory");
}
// --8<-- [end:bulk]
