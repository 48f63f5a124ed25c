// Barriers in shared memory, by which producers and consumers wait for each
// other.
//
//   shared_address       an address of shared memory as PTX takes it
//   Barrier              a barrier that counts arrivals and bytes
//   init, fence_init     initialize it, and make that visible
//   arrive               one arrival
//   arrive_and_expect    one arrival that announces bytes
//   wait, wait_at        wait until a phase has ended
//   Ring                 where a thread stands in a ring of stages
//   give_registers_back  gives registers of a warpgroup back
//   take_registers       takes more registers for a warpgroup
#pragma once

// PTX instructions take addresses of shared memory as 32 bits.
__device__ __forceinline__ unsigned shared_address(const void* at) {
  return (unsigned)__cvta_generic_to_shared(at);
}

// --8<-- [start:barrier]
// A barrier counts arrivals and bytes. A phase ends when `count` arrivals have
// come, and all bytes that were announced; then the next phase begins by
// itself. Phases are told apart by their parity: 0, 1, 0, ...
using Barrier = unsigned long long;

// PTX ISA: mbarrier.init
__device__ __forceinline__ void init(Barrier* barrier, int count) {
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(count)
      : "memory");
}

// The thread that called `init` calls this before other threads, the TMA and
// other blocks of the cluster use the barriers. A barrier of all threads has to
// follow.
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

// Wait until the phase of this parity has ended. If it is the phase before the
// current one, the wait ends at once; so does a wait for parity 1 at a new
// barrier.
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
// Where a producer or a consumer stands in a ring of STAGES stages: the stage,
// and the parity of the phase that the barriers of the stage are in. Producers
// and consumers advance by the same steps.
template <int STAGES>
struct Ring {
  int stage = 0, parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }

  // Advance by one stage if `so`, else by none. Since there is no branch, the
  // compiler knows that `stage` is the same in all lanes of a warp, as
  // descriptors of products want it.
  __device__ __forceinline__ void advance_if(bool so) {
    stage += so;
    const int round = stage == STAGES;
    stage -= round * STAGES, parity ^= round;
  }
};
// --8<-- [end:ring]

// --8<-- [start:registers]
// Give registers of this warpgroup back, or take more: each thread has COUNT
// from here on, a multiple of 8 from 24 to 256. `take_registers` waits until so
// many are free.
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
