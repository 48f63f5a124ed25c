// Copies of boxes by the tensor memory accelerator (TMA), in both directions.
//
//   copy_box         starts to copy a box from a matrix into shared memory
//   copy_box_to_all  the same for several blocks of a cluster
//   prefetch         fetches a map
//   store_box        starts to copy a box from shared memory into a matrix
//   close_stores     closes a group of such copies
//   wait_for_reads   waits until groups have read shared memory
//   fence_for_tma    makes ordinary stores visible to the TMA
#pragma once
#include <cuda.h>
#include <cuda_bf16.h>

#include "mbarrier.cuh"

// --8<-- [start:copy]
// Start to copy the box of a matrix that begins in this row and column; the map
// says how large a box is. The bytes of the box count for the barrier. Elements
// beyond the matrix arrive as zeros.
//
// PTX ISA: cp.async.bulk.tensor
__device__ __forceinline__ void copy_box(void* to, const CUtensorMap& map,
                                         int row, int column,
                                         Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile"
      ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          shared_address(to)),
      "l"(&map), "r"(column), "r"(row), "r"(shared_address(barrier))
      : "memory");
}
// --8<-- [end:copy]

// Fetch the map itself before it is needed.
//
// PTX ISA: prefetch.tensormap
__device__ __forceinline__ void prefetch(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// --8<-- [start:multicast]
// The same for several blocks of the cluster, those whose bits are set in
// `blocks`. The box arrives at the same place in the shared memory of each of
// them, and the barrier at the same place in each counts its bytes.
//
// PTX ISA: cp.async.bulk.tensor
__device__ __forceinline__ void copy_box_to_all(void* to,
                                                const CUtensorMap& map, int row,
                                                int column, Barrier* barrier,
                                                unsigned short blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile"
      ".mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
      "l"(&map), "r"(column), "r"(row), "r"(shared_address(barrier)),
      "h"(blocks)
      : "memory");
}
// --8<-- [end:multicast]

// --8<-- [start:store]
// Start to copy a box from shared memory into the matrix; elements beyond its
// edges are left out. No barrier counts these copies: the thread that starts
// them closes groups of them, and waits for groups.
//
// PTX ISA: cp.async.bulk.tensor
__device__ __forceinline__ void store_box(const CUtensorMap& map, int row,
                                          int column, const void* from) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
      " [%0, {%1, %2}], [%3];" ::"l"(&map),
      "r"(column), "r"(row), "r"(shared_address(from))
      : "memory");
}

// PTX ISA: cp.async.bulk.commit_group
__device__ __forceinline__ void close_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Wait until all but the last GROUPS groups have read their shared memory,
// which may then be written again.
//
// PTX ISA: cp.async.bulk.wait_group
template <int GROUPS>
__device__ __forceinline__ void wait_for_reads() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(GROUPS) : "memory");
}

// Make visible to the TMA what this thread has written to shared memory with
// ordinary stores. The TMA may be asked to store it after the next barrier.
//
// PTX ISA: fence
__device__ __forceinline__ void fence_for_tma() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// --8<-- [end:store]
