// Sending to another block of the cluster, which then reads its own shared
// memory.
//
//   arrive_early  the first half of a barrier of the cluster, with nothing to
//                 show
//   store_pair    two floats into another block's shared memory
#pragma once
#include "cluster.cuh"

// --8<-- [start:push]
// The first half of a barrier of the cluster, where the others need not see
// what this thread has written: it has begun, and that is all. `arrive` would
// wait until the whole GPU sees what the thread has accessed.
//
// PTX ISA: barrier.cluster
__device__ __forceinline__ void arrive_early() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

// Two floats to an address that `in_block` has given, a multiple of 8.
//
// PTX ISA: st
__device__ __forceinline__ void store_pair(unsigned there, float2 pair) {
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(there),
               "f"(pair.x), "f"(pair.y)
               : "memory");
}
// --8<-- [end:push]
