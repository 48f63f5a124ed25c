// Launches that overlap.
//
//   begin_next         lets the next kernel of a chain begin
//   wait_for_previous  waits until the kernels before have ended
//
// In a chain of kernels each reads what the one before has written. If the
// chain is a CUDA graph whose arrows are 'programmatic' (graphs.py), a kernel
// begins as soon as all blocks of the kernel before have allowed it, from sm_90
// on. While the kernel before still runs, it is launched, finds its place and
// fetches what no kernel of the chain writes, weights above all. Then it waits.
//
// Every kernel of such a chain calls both functions, whatever else it does. A
// kernel has ended when all its blocks have, so a single block that waits keeps
// the order of the chain. If no block waited, a later kernel could go on before
// an earlier one has ended. Which blocks have work depends on the requests, so
// all blocks wait. Before it has waited, a kernel writes nothing, and reads
// only what was there before the graph began. Outside of such a graph both
// functions do nothing.
#pragma once

// --8<-- [start:overlap]
// Let the next kernel of the chain begin, as soon as all blocks have said so.
//
// PTX ISA: griddepcontrol
__device__ __forceinline__ void begin_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Wait until all kernels before this one have ended, and what they wrote can be
// read. An array that they write must not be `const __restrict__` in this
// kernel: the compiler could move its loads to before the wait.
//
// PTX ISA: griddepcontrol
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// --8<-- [end:overlap]
