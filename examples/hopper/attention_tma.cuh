// What attention on Hopper needs besides ptx/.
//
//   copy_box       starts to copy a tile of a tensor that has five axes
//   copy_to_both   the same for both blocks of a cluster
//   wait_for_turn  waits until this warpgroup has its turn
//   pass_turn      gives another warpgroup the turn
#pragma once
#include "ptx/cluster.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/tma.cuh"

// --8<-- [start:copy]
// Start to copy the box of a tensor that begins at this token of a head. The
// tensor has five axes: 64 elements, tokens, parts of 64 elements of a head,
// heads, sequences. Elements behind the last token arrive as zeros.
//
// PTX ISA: cp.async.bulk.tensor
__device__ __forceinline__ void copy_box(unsigned to, const CUtensorMap& map,
                                         int token, int head, int sequence,
                                         Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile"
      ".mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(to),
      "l"(&map), "r"(0), "r"(token), "r"(0), "r"(head), "r"(sequence),
      "r"(shared_address(barrier))
      : "memory");
}

// Start to copy a box of one part of a head, to the same place in both blocks
// of a cluster of two. The barriers at the same place in both count its bytes.
__device__ __forceinline__ void copy_to_both(unsigned to,
                                             const CUtensorMap& map, int token,
                                             int part, int head, int sequence,
                                             Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile"
      ".mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3, %4, %5, %6}], [%7], %8;" ::"r"(to),
      "l"(&map), "r"(0), "r"(token), "r"(part), "r"(head), "r"(sequence),
      "r"(shared_address(barrier)), "h"((short)3)
      : "memory");
}
// --8<-- [end:copy]

// --8<-- [start:turns]
// Named barriers: `id` is from 1 to 15, one for each warpgroup that takes
// turns. A barrier opens when its warpgroup waits there, and another one has
// passed the turn to it.
__device__ __forceinline__ void wait_for_turn(int id) { sync_at<256>(id); }

__device__ __forceinline__ void pass_turn(int id) { arrive_at<256>(id); }
// --8<-- [end:turns]
