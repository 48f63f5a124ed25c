// What a pipeline of copies and products on Hopper asks for in PTX, apart from
// the products themselves: barriers that count bytes, copies of tiles by the
// tensor memory accelerator (TMA), turns, and registers that change hands.
#pragma once
#include <cuda.h>
#include <cuda_bf16.h>

__device__ __forceinline__ unsigned shared_address(const void* at) {
  return (unsigned)__cvta_generic_to_shared(at);
}

// --8<-- [start:barrier]
// A barrier in shared memory. Its phase ends when `arrivals` have arrived and
// all bytes that they announced are there. Phases are told apart by parity.
using Barrier = unsigned long long;

__device__ __forceinline__ void init(Barrier* barrier, int arrivals) {
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(arrivals)
      : "memory");
}

// The barriers that this thread has initialized are there for the TMA, too.
__device__ __forceinline__ void show_barriers() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void arrive(Barrier* barrier) {
  asm volatile(
      "mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
      : "memory");
}

__device__ __forceinline__ void arrive_and_expect(Barrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
}

// Until the phase of this parity has ended. A barrier that is new behaves as if
// a phase of parity 1 had ended just before.
__device__ __forceinline__ void wait(Barrier* barrier, unsigned parity) {
  int done = 0;
  while (!done) {
    asm volatile(
        "{ .reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.b32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
}
// --8<-- [end:barrier]

// --8<-- [start:ring]
// Where one is in a ring of buffers, and the parity of the round.
template <int STAGES>
struct Ring {
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

__device__ __forceinline__ void fetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
// --8<-- [end:copy]

// --8<-- [start:cluster]
// Arrives at the barrier that has this one's place in a block of the cluster.
__device__ __forceinline__ void arrive_in(Barrier* barrier, unsigned block) {
  asm volatile(
      "{ .reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(
          shared_address(barrier)),
      "r"(block)
      : "memory");
}

// All threads of the cluster that have not ended.
__device__ __forceinline__ void meet_cluster() {
  asm volatile(
      "barrier.cluster.arrive.release;\n"
      "barrier.cluster.wait.acquire;" ::
          : "memory");
}
// --8<-- [end:cluster]

// --8<-- [start:turns]
// Named barriers: `id` from 1 to 15, one for each warpgroup that takes turns.
// It opens when the warpgroup waits there and another one has passed the turn.
__device__ __forceinline__ void wait_for_turn(int id) {
  asm volatile("bar.sync %0, 256;" ::"r"(id) : "memory");
}

__device__ __forceinline__ void pass_turn(int id) {
  asm volatile("bar.arrive %0, 256;" ::"r"(id) : "memory");
}
// --8<-- [end:turns]

// --8<-- [start:registers]
// A warpgroup gives registers back, or waits until it has so many.
template <int COUNT>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <int COUNT>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}
// --8<-- [end:registers]
