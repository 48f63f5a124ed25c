// wgmma of wgmma.cuh, which explains A_ALONG and B_ALONG, for 16, 32 and 96
// columns, with factors in bf16 only.
//
// PTX ISA: wgmma.mma_async
#pragma once
#include "wgmma.cuh"

#define SUM8(i)                                                       \
  "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), \
      "+f"(sum[i + 4]), "+f"(sum[i + 5]), "+f"(sum[i + 6]), "+f"(sum[i + 7])

template <bool A_ALONG, bool B_ALONG>
__device__ __forceinline__ void wgmma(float (&sum)[8], unsigned long long a,
                                      unsigned long long b, bool add) {
  asm volatile(
      "{ .reg .pred add; setp.ne.s32 add, %10, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16\n"
      "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, add, 1, 1, %11, %12; }"
      : SUM8(0)
      : "l"(a), "l"(b), "r"((int)add), "n"(!A_ALONG), "n"(!B_ALONG));
}

template <bool A_ALONG, bool B_ALONG>
__device__ __forceinline__ void wgmma(float (&sum)[16], unsigned long long a,
                                      unsigned long long b, bool add) {
  asm volatile(
      "{ .reg .pred add; setp.ne.s32 add, %18, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16\n"
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15},"
      " %16, %17, add, 1, 1, %19, %20; }"
      : SUM8(0), SUM8(8)
      : "l"(a), "l"(b), "r"((int)add), "n"(!A_ALONG), "n"(!B_ALONG));
}

template <bool A_ALONG, bool B_ALONG>
__device__ __forceinline__ void wgmma(float (&sum)[48], unsigned long long a,
                                      unsigned long long b, bool add) {
  asm volatile(
      "{ .reg .pred add; setp.ne.s32 add, %50, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n96k16.f32.bf16.bf16\n"
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
      " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "
      "%30, %31,"
      " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "
      "%46, %47},"
      " %48, %49, add, 1, 1, %51, %52; }"
      : SUM8(0), SUM8(8), SUM8(16), SUM8(24), SUM8(32), SUM8(40)
      : "l"(a), "l"(b), "r"((int)add), "n"(!A_ALONG), "n"(!B_ALONG));
}
#undef SUM8
