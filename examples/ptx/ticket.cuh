// How blocks find out which of them is the last to finish.
//
//   last_to_arrive  counts a block in, and tells the last one
#pragma once

// Counts that one more block has arrived. Returns true in the last of `count`
// blocks, which sees all that the others wrote before, and sets the ticket back
// to 0. ticket: 0 before the first block arrives.
//
// PTX ISA: atom
__device__ __forceinline__ bool last_to_arrive(unsigned* ticket, int count) {
  int before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(ticket)), "r"(count - 1)
               : "memory");
  return before == count - 1;
}
