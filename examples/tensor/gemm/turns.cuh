// The two consumers end their last tiles one after the other.
#pragma once

// --8<-- [start:turns]
// Barrier 3 of the hardware; 1 and 2 are of each consumer alone. One consumer
// waits until the other has come to let it; that one goes on.
__device__ __forceinline__ void wait_for_other_consumer() {
  asm volatile("bar.sync 3, 256;" ::: "memory");
}
__device__ __forceinline__ void let_other_consumer() {
  asm volatile("bar.arrive 3, 256;" ::: "memory");
}
// --8<-- [end:turns]
