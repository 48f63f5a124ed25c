// Barriers of the hardware for some of the threads of a block. It has 16 of
// them; number 0 is that of __syncthreads.
//
//   sync_at    waits at a barrier until all of its threads have come
//   arrive_at  counts this warp in, and does not wait
#pragma once

// --8<-- [start:named]
// THREADS: those that wait and those that only arrive, all together.
//
// PTX ISA: bar
template <int THREADS>
__device__ __forceinline__ void sync_at(int number) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(THREADS) : "memory");
}

template <int THREADS>
__device__ __forceinline__ void arrive_at(int number) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "n"(THREADS) : "memory");
}
// --8<-- [end:named]
