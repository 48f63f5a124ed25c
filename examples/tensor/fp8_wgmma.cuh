// Products of a warpgroup with factors in e4m3.
#pragma once
#include "wgmma.cuh"

constexpr int BK = 128;  // steps of depth in a stage: a line of 128 bytes

// The instruction names each register of the sum.
#define SUM4(i) \
  "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SUM16(i) SUM4(i), SUM4(i + 4), SUM4(i + 8), SUM4(i + 12)

// --8<-- [start:wgmma]
// Start sum (+)= A B: A is 64 x 32, B 32 x N, both e4m3 in shared memory, their
// lines along the depth: for 8-bit factors there is no other way. N columns are
// N / 2 sums of a thread, which lie as those of bf16 products do.
// --8<-- [end:wgmma]
__device__ __forceinline__ void wgmma_e4m3(float (&sum)[64],
                                           unsigned long long a,
                                           unsigned long long b, bool add) {
  asm volatile(
      "{ .reg .pred add; setp.ne.s32 add, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "
      "%15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, "
      "%28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, "
      "%41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, "
      "%54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, add, 1, 1; }"
      : SUM16(0), SUM16(16), SUM16(32), SUM16(48)
      : "l"(a), "l"(b), "r"((int)add));
}

__device__ __forceinline__ void wgmma_e4m3(float (&sum)[96],
                                           unsigned long long a,
                                           unsigned long long b, bool add) {
  asm volatile(
      "{ .reg .pred add; setp.ne.s32 add, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k32.f32.e4m3.e4m3 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "
      "%15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, "
      "%28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, "
      "%41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, "
      "%54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, "
      "%67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, "
      "%93, %94, %95"
      "}, %96, %97, add, 1, 1; }"
      : SUM16(0), SUM16(16), SUM16(32), SUM16(48), SUM16(64), SUM16(80)
      : "l"(a), "l"(b), "r"((int)add));
}

__device__ __forceinline__ void wgmma_e4m3(float (&sum)[128],
                                           unsigned long long a,
                                           unsigned long long b, bool add) {
  asm volatile(
      "{ .reg .pred add; setp.ne.s32 add, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "
      "%15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, "
      "%28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, "
      "%41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, "
      "%54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, "
      "%67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, "
      "%93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, "
      "%105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, "
      "%116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "
      "%127"
      "}, %128, %129, add, 1, 1; }"
      : SUM16(0), SUM16(16), SUM16(32), SUM16(48), SUM16(64), SUM16(80),
        SUM16(96), SUM16(112)
      : "l"(a), "l"(b), "r"((int)add));
}
#undef SUM4
#undef SUM16

// --8<-- [start:multiply]
// sum (+)= the product of 64 rows of A and of as many columns of B as the sums
// have, one stage deep: four times 32 steps. Started and closed, not waited
// for.
template <int SIZE>
__device__ __forceinline__ void multiply_stage(float (&sum)[SIZE], unsigned a,
                                               unsigned b, bool add) {
  const Descriptor of_a(a), of_b(b);
  fence_sums();
#pragma unroll
  for (int i = 0; i < BK / 32; ++i)  // 32 steps are 32 bytes
    wgmma_e4m3(sum, of_a.at(i * 32), of_b.at(i * 32), add || i > 0);
  close_products();
}
// --8<-- [end:multiply]
