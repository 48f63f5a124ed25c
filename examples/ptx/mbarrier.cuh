// Barriers in shared memory, for the producers and consumers of this part.
#pragma once

// PTX instructions take addresses of shared memory as 32 bits.
__device__ __forceinline__ unsigned shared_address(const void* at) {
  return (unsigned)__cvta_generic_to_shared(at);
}

// --8<-- [start:barrier]
// A barrier counts arrivals and bytes. A phase ends when `count` arrivals have
// come and all bytes that were announced; then the next phase begins by itself.
// Phases are told apart by their parity: 0, 1, 0, ...
using Barrier = unsigned long long;

// PTX ISA: mbarrier.init
__device__ __forceinline__ void init(Barrier* barrier, int count) {
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(count)
      : "memory");
}

// By the thread that called `init`, before others, the TMA and other blocks of
// the cluster use the barriers; a barrier of all threads has to follow.
//
// PTX ISA: fence
__device__ __forceinline__ void fence_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// PTX ISA: mbarrier.arrive
__device__ __forceinline__ void arrive(Barrier* barrier) {
  asm volatile(
      "mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
      : "memory");
}

// One arrival that also announces bytes, which the TMA brings.
//
// PTX ISA: mbarrier.arrive
__device__ __forceinline__ void arrive_and_expect(Barrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
}

// Wait until the phase of this parity has ended. At once where it is the one
// before the current phase, and so with parity 1 on a new barrier.
//
// PTX ISA: mbarrier.try_wait
__device__ __forceinline__ void wait_at(unsigned address, int parity) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again_%=:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again_%=; }" ::"r"(address),
      "r"(parity)
      : "memory");
}

__device__ __forceinline__ void wait(Barrier* barrier, int parity) {
  wait_at(shared_address(barrier), parity);
}
// --8<-- [end:barrier]

// --8<-- [start:ring]
// Where a producer or a consumer stands in a ring of STAGES: the stage, and the
// parity of the phase that its barriers are in. Both change at the same steps.
template <int STAGES>
struct Ring {
  int stage = 0, parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }
};
// --8<-- [end:ring]

// --8<-- [start:registers]
// Give registers of this warpgroup back, or take more: COUNT for each thread
// from here on, a multiple of 8. `take` waits until so many are free.
//
// PTX ISA: setmaxnreg
template <int COUNT>
__device__ __forceinline__ void give_registers_back() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <int COUNT>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}
// --8<-- [end:registers]
