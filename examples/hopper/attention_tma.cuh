// What attention on Hopper asks for beside ptx/: copies of tiles whose tensors
// have five axes, rings that advance without a branch, and turns.
#pragma once
#include "ptx/cluster.cuh"
#include "ptx/tma.cuh"

// The barriers that this thread has initialized are there for the TMA, too.
// PTX ISA: fence
__device__ __forceinline__ void show_barriers() { fence_for_tma(); }

// --8<-- [start:ring]
// Where one is in a ring of buffers, and the parity of the round.
template <int STAGES>
struct Buffers {
  unsigned stage = 0, parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }
  // By one buffer or none. Without a branch, `stage` stays a number that a warp
  // has once, as descriptors of products want it.
  __device__ __forceinline__ void advance_if(bool so) {
    stage += so;
    const unsigned round = stage == STAGES;
    stage -= round * STAGES, parity ^= round;
  }
};
// --8<-- [end:ring]

// --8<-- [start:copy]
// Starts to copy the box of a tensor that begins at this token of a head. The
// tensor has five axes: 64 elements, tokens, parts of 64 elements of a head,
// heads, sequences. What lies behind the last token arrives as zeros.
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

// The same of one part, to the same place in all blocks of a cluster of two,
// whose barriers it counts for.
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
// Named barriers: `id` from 1 to 15, one for each warpgroup that takes turns.
// It opens when the warpgroup waits there and another one has passed the turn.
//
// PTX ISA: bar
__device__ __forceinline__ void wait_for_turn(int id) {
  asm volatile("bar.sync %0, 256;" ::"r"(id) : "memory");
}

__device__ __forceinline__ void pass_turn(int id) {
  asm volatile("bar.arrive %0, 256;" ::"r"(id) : "memory");
}
// --8<-- [end:turns]
