// Three types of factors for `mma.sync`: Tf32, Bf16 and Fp16. Each has
//
//   N         numbers in a register
//   round     N fp32 numbers rounded to the type, as one register
//   value     number i of a register, as fp32
//   multiply  d += a b, by one instruction
//
// A warp multiplies a 16 x K by a K x 8 matrix and adds the product to 16 x 8
// sums in fp32. K is 8 for TF32 and 16 for fp16 and bf16: in either case a lane
// has four registers of A and two of B. With g = lane / 4 and t = lane % 4 it
// holds, N numbers to a register,
//
//     A  a[0]  row g,      columns N t, ...    a[2]  the same, columns + 4 N
//        a[1]  row g + 8,  columns N t, ...    a[3]  the same, columns + 4 N
//     B  b[0]  column g,   rows N t, ...       b[1]  the same, rows + 4 N
//     D  d[0], d[1]  row g, columns 2t, 2t + 1    d[2], d[3]  row g + 8
#pragma once
#include <cuda_fp16.h>

#include "ptx/mma.cuh"
#include "ptx/special.cuh"

// --8<-- [start:tf32]
struct Tf32 {
  static constexpr int N = 1;  // numbers in a register
  // Rounded to the nearest; the lower 13 bits of the register are zero.
  static __device__ unsigned round(const float (&x)[N]) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x[0]));
    return bits;
  }
  static __device__ float value(unsigned bits, int) {
    return __uint_as_float(bits);
  }
  // d += a b
  static __device__ void multiply(float (&d)[4], const unsigned (&a)[4],
                                  const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
// --8<-- [end:tf32]

struct Bf16 {
  static constexpr int N = 2;
  static __device__ unsigned round(const float (&x)[N]) {
    return pack(x[0], x[1]);
  }
  static __device__ float value(unsigned bits, int i) {
    return __uint_as_float(i ? bits & 0xffff0000u : bits << 16);
  }
  static __device__ void multiply(float (&d)[4], const unsigned (&a)[4],
                                  const unsigned (&b)[2]) {
    mma(d, a, b[0], b[1]);
  }
};

struct Fp16 {
  static constexpr int N = 2;
  static __device__ unsigned round(const float (&x)[N]) {
    const __half2 both = __floats2half2_rn(x[0], x[1]);
    return reinterpret_cast<const unsigned&>(both);
  }
  static __device__ float value(unsigned bits, int i) {
    const __half2 both = reinterpret_cast<const __half2&>(bits);
    return i ? __high2float(both) : __low2float(both);
  }
  static __device__ void multiply(float (&d)[4], const unsigned (&a)[4],
                                  const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
