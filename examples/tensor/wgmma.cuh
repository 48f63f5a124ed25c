// Products of a warpgroup, four warps side by side: wgmma.
#pragma once
#include <cuda_bf16.h>

// wgmma finds a factor in shared memory by a descriptor of 64 bits: where it
// begins, and two distances, all in units of 16 bytes. All tiles of this part
// are in boxes as the TMA writes them with its swizzle of 128 bytes: a line has
// 64 bf16, and its pieces of 16 bytes lie in an order that changes from line to
// line and repeats after eight lines, 1024 bytes. Boxes begin at multiples of
// 1024 bytes.
//
// A factor may lie in two ways. ALONG_K: a line is a row of A, or a column of
// B, and runs along the depth. Then `stride` is from eight lines to the next
// eight, and 16 steps of depth further is 32 bytes further, inside the line.
// Across: a line is one step of depth and runs over 64 rows of A, or columns
// of B. Then `stride` is from eight steps of depth to the next eight, `leading`
// from one box to the next, which has the next 64 rows or columns, and 16 steps
// of depth further is 16 lines further.
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

// Bytes from a piece of 16 steps of depth to the next.
template <bool ALONG_K>
constexpr unsigned NEXT_DEPTH = ALONG_K ? 32 : 16 * 128;
// --8<-- [end:descriptor]

// --8<-- [start:order]
// Before the first wgmma: what the warps wrote into the registers of the sums
// is there for it.
__device__ __forceinline__ void fence_sums() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Products are counted in groups.
__device__ __forceinline__ void close_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Until all groups but the last GROUPS have ended: their sums may be read, and
// the shared memory that they read written.
template <int GROUPS>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(GROUPS) : "memory");
}
// --8<-- [end:order]

// --8<-- [start:wgmma]
// Start sum (+)= A B: A is 64 x 16, B 16 x N, both bf16 in shared memory; sum
// is 64 x N in fp32, in the registers of 128 threads. Without `add` the old sum
// does not count. A_ALONG, B_ALONG: how the factors lie, as above. Nothing may
// touch sum before `wait_for_products`.
//
// Warp w of the four has the rows 16 w to 16 w + 15. With g = lane / 4 and
// t = lane % 4 a lane holds of every eight columns 8 j to 8 j + 7
//
//     sum[4 j], sum[4 j + 1]      row g,      columns 8 j + 2 t and + 1
//     sum[4 j + 2], sum[4 j + 3]  row g + 8,  the same columns
//
// --8<-- [end:wgmma]

// The instruction names each register of the sum.
#define SUM4(i) \
  "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SUM16(i) SUM4(i), SUM4(i + 4), SUM4(i + 8), SUM4(i + 12)

template <bool A_ALONG, bool B_ALONG>
__device__ __forceinline__ void wgmma(float (&sum)[32], unsigned long long a,
                                      unsigned long long b, bool add) {
  asm volatile(
      "{ .reg .pred add; setp.ne.s32 add, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16\n"
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
      " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "
      "%30, %31},"
      " %32, %33, add, 1, 1, %35, %36; }"
      : SUM16(0), SUM16(16)
      : "l"(a), "l"(b), "r"((int)add), "n"(!A_ALONG), "n"(!B_ALONG));
}

template <bool A_ALONG, bool B_ALONG>
__device__ __forceinline__ void wgmma(float (&sum)[64], unsigned long long a,
                                      unsigned long long b, bool add) {
  asm volatile(
      "{ .reg .pred add; setp.ne.s32 add, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16\n"
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
      " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "
      "%30, %31,"
      " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "
      "%46, %47,"
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
      "%62, %63},"
      " %64, %65, add, 1, 1, %67, %68; }"
      : SUM16(0), SUM16(16), SUM16(32), SUM16(48)
      : "l"(a), "l"(b), "r"((int)add), "n"(!A_ALONG), "n"(!B_ALONG));
}

template <bool A_ALONG, bool B_ALONG>
__device__ __forceinline__ void wgmma(float (&sum)[96], unsigned long long a,
                                      unsigned long long b, bool add) {
  asm volatile(
      "{ .reg .pred add; setp.ne.s32 add, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16\n"
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
      " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "
      "%30, %31,"
      " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "
      "%46, %47,"
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
      "%62, %63,"
      " %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, "
      "%78, %79,"
      " %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, "
      "%94, %95},"
      " %96, %97, add, 1, 1, %99, %100; }"
      : SUM16(0), SUM16(16), SUM16(32), SUM16(48), SUM16(64), SUM16(80)
      : "l"(a), "l"(b), "r"((int)add), "n"(!A_ALONG), "n"(!B_ALONG));
}

template <bool A_ALONG, bool B_ALONG>
__device__ __forceinline__ void wgmma(float (&sum)[128], unsigned long long a,
                                      unsigned long long b, bool add) {
  asm volatile(
      "{ .reg .pred add; setp.ne.s32 add, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16\n"
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
      " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "
      "%30, %31,"
      " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "
      "%46, %47,"
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
      "%62, %63,"
      " %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, "
      "%78, %79,"
      " %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, "
      "%94, %95,"
      " %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, "
      "%108, %109, %110, %111,"
      " %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, "
      "%123, %124, %125, %126, %127},"
      " %128, %129, add, 1, 1, %131, %132; }"
      : SUM16(0), SUM16(16), SUM16(32), SUM16(48), SUM16(64), SUM16(80),
        SUM16(96), SUM16(112)
      : "l"(a), "l"(b), "r"((int)add), "n"(!A_ALONG), "n"(!B_ALONG));
}
#undef SUM4
#undef SUM16
