// Products of a warpgroup, which is four warps: wgmma.
//
//   Descriptor         where a factor lies in shared memory
//   NEXT_DEPTH         the distance from 16 steps of depth to the next 16
//   fence_sums         comes before products
//   close_products     closes a group of products
//   wait_for_products  waits until groups have ended
//   wgmma              one product: 64 rows, N columns, 16 steps of depth
#pragma once
#include "half.cuh"
#include "named_sums.cuh"

// wgmma finds a factor in shared memory by a descriptor of 64 bits: where the
// factor begins, and two distances, all in units of 16 bytes. All tiles lie in
// boxes as the TMA writes them with its swizzle of 128 bytes: a line has 64
// bf16, and its pieces of 16 bytes lie in an order that changes from line to
// line and repeats after eight lines, 1024 bytes. Boxes begin at multiples of
// 1024 bytes.
//
// A factor may lie in two ways.
//
// Along the depth (ALONG_K): a line is a row of A, or a column of B. Then
// `stride` is the distance from eight lines to the next eight, and the next 16
// steps of depth begin 32 bytes further on, in the same line.
//
// Across it: a line is one step of depth, and runs over 64 rows of A, or
// columns of B. Then `stride` is the distance from eight steps of depth to the
// next eight, `leading` that from a box to the next, which has the next 64 rows
// or columns, and the next 16 steps of depth begin 16 lines further on.
//
// PTX ISA: wgmma.mma_async, 'Matrix Descriptor Format' for the bits, 'Shared
// Memory Matrix Layout' for the two ways
// --8<-- [start:descriptor]
struct Descriptor {
  unsigned long long bits;

  __device__ __forceinline__ explicit Descriptor(unsigned address,
                                                 unsigned leading = 16,
                                                 unsigned stride = 1024)
      : bits((unsigned long long)(address % (1 << 18) / 16) |
             (unsigned long long)(leading / 16) << 16 |
             (unsigned long long)(stride / 16) << 32 | 1ull << 62) {
  }  // the swizzle of 128 bytes

  __device__ __forceinline__ unsigned long long at(unsigned bytes) const {
    return bits + bytes / 16;
  }
};

// Bytes from 16 steps of depth to the next 16, for both ways.
template <bool ALONG_K>
constexpr unsigned NEXT_DEPTH = ALONG_K ? 32 : 16 * 128;
// --8<-- [end:descriptor]

// --8<-- [start:order]
// Comes before the first wgmma: what the warps have written into the registers
// of the sums is then there for it.
//
// PTX ISA: wgmma.fence
__device__ __forceinline__ void fence_sums() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Close a group of products: products are counted in groups.
//
// PTX ISA: wgmma.commit_group
__device__ __forceinline__ void close_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Wait until all groups but the last GROUPS have ended. Their sums may then be
// read, and the shared memory that they have read may be written.
//
// PTX ISA: wgmma.wait_group
template <int GROUPS>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(GROUPS) : "memory");
}
// --8<-- [end:order]

// --8<-- [start:wgmma]
// Start sum (+)= A B: A is 64 x 16, B is 16 x N, both of type In, bf16 or fp16,
// in shared memory; a and b are their descriptors. sum is 64 x N in fp32, in
// the registers of 128 threads. Without `add` the old sum does not count.
// A_ALONG, B_ALONG: whether the factors lie along the depth, as above. Nothing
// may touch sum before `wait_for_products`.
//
// Warp w of the four has the rows 16 w to 16 w + 15. With g = lane / 4 and
// t = lane % 4 a lane holds of every eight columns 8 j to 8 j + 7
//
//     sum[4 j], sum[4 j + 1]      row g,      columns 8 j + 2 t and + 1
//     sum[4 j + 2], sum[4 j + 3]  row g + 8,  the same columns
//
// PTX ISA: wgmma.mma_async, 'Register Fragments' for the places of the sums
//
// --8<-- [end:wgmma]

// --8<-- [start:wrapper]
// One text for both types of factors. The last two operands say which factors
// are to be turned: those that do not lie along the depth.
#define START(TYPE, COLUMNS, NAMES, A, B, ADD, TURN_A, TURN_B, ...)        \
  asm volatile("{ .reg .pred add; setp.ne.s32 add, " ADD                   \
               ", 0;\n"                                                    \
               "wgmma.mma_async.sync.aligned.m64n" COLUMNS "k16.f32." TYPE \
               "." TYPE " {" NAMES "}, " A ", " B ", add, 1, 1, " TURN_A   \
               ", " TURN_B "; }"                                           \
               : __VA_ARGS__                                               \
               : "l"(a), "l"(b), "r"((int)add), "n"(!A_ALONG), "n"(!B_ALONG))
#define START_OF(...)          \
  if constexpr (IS_FP16<In>)   \
    START("f16", __VA_ARGS__); \
  else                         \
    START("bf16", __VA_ARGS__)

template <bool A_ALONG, bool B_ALONG, class In = __nv_bfloat16>
__device__ __forceinline__ void wgmma(float (&sum)[32], unsigned long long a,
                                      unsigned long long b, bool add) {
  START_OF("64", NAMES32, "%32", "%33", "%34", "%35", "%36", SUM32(0));
}
// --8<-- [end:wrapper]

template <bool A_ALONG, bool B_ALONG, class In = __nv_bfloat16>
__device__ __forceinline__ void wgmma(float (&sum)[64], unsigned long long a,
                                      unsigned long long b, bool add) {
  START_OF("128", NAMES64, "%64", "%65", "%66", "%67", "%68", SUM32(0),
           SUM32(32));
}

template <bool A_ALONG, bool B_ALONG, class In = __nv_bfloat16>
__device__ __forceinline__ void wgmma(float (&sum)[96], unsigned long long a,
                                      unsigned long long b, bool add) {
  START_OF("192", NAMES96, "%96", "%97", "%98", "%99", "%100", SUM32(0),
           SUM32(32), SUM32(64));
}

template <bool A_ALONG, bool B_ALONG, class In = __nv_bfloat16>
__device__ __forceinline__ void wgmma(float (&sum)[128], unsigned long long a,
                                      unsigned long long b, bool add) {
  START_OF("256", NAMES128, "%128", "%129", "%130", "%131", "%132", SUM32(0),
           SUM32(32), SUM32(64), SUM32(96));
}

#undef START_OF
#undef START
