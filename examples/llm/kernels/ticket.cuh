#pragma once

// One more block has arrived; true in the last of `count`, which sees what the
// others have written before. The ticket is 0 again then.
__device__ __forceinline__ bool last_to_arrive(unsigned* ticket, int count) {
  int before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(ticket)), "r"(count - 1)
               : "memory");
  return before == count - 1;
}
