// The Ampere way to the tensor cores in PTX: copies into shared memory past the
// registers, and products of small matrices by a warp.
//
//   copy16            starts a copy past the registers
//   commit            closes a group of copies
//   wait_for_all_but  waits until groups have arrived
//   mma               a product of small matrices by a warp
//   ldmatrix          fragments of A from shared memory
//   ldmatrix_turned   fragments of B from shared memory
#pragma once
#include <cuda_bf16.h>

#include "mbarrier.cuh"  // shared_address

// --8<-- [start:copy]
// Start to copy 16 bytes from global to shared memory; both addresses are
// multiples of 16. Only the first `bytes` are read; zeros stand for the rest.
//
// PTX ISA: cp.async
__device__ __forceinline__ void copy16(unsigned to, const void* from,
                                       int bytes) {
  asm volatile(
      "cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to),
      "l"(from), "r"(bytes)
      : "memory");
}

// Copies are counted in groups: one for each step, even if it is empty.
//
// PTX ISA: cp.async.commit_group
__device__ __forceinline__ void commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Wait for this thread's own copies, all but the last GROUPS groups.
//
// PTX ISA: cp.async.wait_group
template <int GROUPS>
__device__ __forceinline__ void wait_for_all_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
}
// --8<-- [end:copy]

// --8<-- [start:mma]
// D += A B by a warp: A is 16 x 16, B is 16 x 8, both bf16; D is 16 x 8 in
// fp32. With g = lane / 4 and t = lane % 4 a lane holds, two bf16 in a
// register,
//
//     A  a[0]  row g,      columns 2t, 2t + 1      a[2]  the same, columns + 8
//        a[1]  row g + 8,  columns 2t, 2t + 1      a[3]  the same, columns + 8
//     B  b0    rows 2t, 2t + 1,  column g          b1    the same, rows + 8
//     D  d[0], d[1]  row g, columns 2t, 2t + 1     d[2], d[3]  row g + 8
//
// PTX ISA: mma
__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4],
                                    unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// --8<-- [end:mma]

// --8<-- [start:ldmatrix]
// Four 8 x 8 matrices of 16-bit elements from shared memory. Lane i gives the
// address of a row of 16 bytes: row i % 8 of matrix i / 8. In tile[j] it
// receives the elements 2t, 2t + 1 of row g of matrix j: they are where `mma`
// wants those of A.
//
// PTX ISA: ldmatrix
__device__ __forceinline__ void ldmatrix(unsigned (&tile)[4], unsigned row) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(tile[0]), "=r"(tile[1]), "=r"(tile[2]), "=r"(tile[3])
      : "r"(row)
      : "memory");
}

// The same with each matrix turned: a lane receives the elements 2t, 2t + 1 of
// column g. So the elements of B, which lies row by row, are where `mma` wants
// them.
//
// PTX ISA: ldmatrix
__device__ __forceinline__ void ldmatrix_turned(unsigned (&tile)[4],
                                                unsigned row) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(tile[0]), "=r"(tile[1]), "=r"(tile[2]), "=r"(tile[3])
      : "r"(row)
      : "memory");
}
// --8<-- [end:ldmatrix]
