// Single instructions on numbers in fp32, for where a few units in the last
// place do not matter.
//
//   power_of_two, reciprocal  2^x and 1 / x by the special function unit
//   pack                      two numbers rounded to bf16, in one word
#pragma once

// --8<-- [start:units]
// Each of these is one instruction of the special function units. Results are
// off by at most 2 units in the last place, and subnormal numbers become 0: so
// there is no need for the instructions that __expf and __fdividef have around
// theirs.
//
// PTX ISA: ex2
__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// PTX ISA: rcp
__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// --8<-- [end:units]

// The first number is in the lower half of the word.
//
// PTX ISA: cvt
__device__ __forceinline__ unsigned pack(float first, float second) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
}
