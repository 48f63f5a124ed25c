// Launches that overlap. In a chain of kernels each reads what the one before
// has written. Where the chain is a CUDA graph, and its arrows are made
// 'programmatic' (graphs.py), a kernel already begins when all blocks of the
// one before have said that it may, from sm_90 on: it is launched, finds its
// place and fetches what no kernel of the chain writes, weights above all,
// while the one before still runs. Then it waits.
//
// Every kernel of such a chain calls both, whatever else it does. It has ended
// when all its blocks have, so one that waits keeps the chain whole. If none
// did, a later kernel could go on before an earlier one has ended. Which blocks
// have work depends on the requests, so all of them wait. Before it has waited,
// a kernel writes nothing and reads only what was there before the graph began.
// Elsewhere than in such a graph both do nothing.
#pragma once

// --8<-- [start:overlap]
// PTX ISA: griddepcontrol
__device__ __forceinline__ void begin_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// All kernels before this one have ended, and what they wrote is to be seen. An
// array that they write is no `const __restrict__` here: the compiler could
// read it before.
//
// PTX ISA: griddepcontrol
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// --8<-- [end:overlap]
