// The registers of sums, as wgmma names them. The wrappers of wgmma for all
// types of factors use these macros.
//
//   SUM4, SUM16, SUM32   operands: 4, 16 or 32 sums
//   NAMES32 to NAMES128  the names of the first 32 to 128 operands
//   START_ALONG          a product of factors that run along the depth
#pragma once

// --8<-- [start:sums]
// Operands that are read and written: sum[i] and the sums behind it.
#define SUM4(i) \
  "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SUM16(i) SUM4(i), SUM4(i + 4), SUM4(i + 8), SUM4(i + 12)
#define SUM32(i) SUM16(i), SUM16(i + 16)

// The names of the first 32, 64, 96 or 128 operands in the instruction.
#define NAMES32                                                       \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, " \
  "%15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, " \
  "%28, %29, %30, %31"
// --8<-- [end:sums]
#define NAMES64                                                         \
  NAMES32                                                               \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, " \
  "%45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, "   \
  "%58, %59, %60, %61, %62, %63"
#define NAMES96                                                         \
  NAMES64                                                               \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, " \
  "%77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, "   \
  "%90, %91, %92, %93, %94, %95"
#define NAMES128                                                       \
  NAMES96                                                              \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, "   \
  "%107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, " \
  "%118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// Start sum (+)= a b where both factors run along the depth, as all factors but
// those of 16 bits must. SHAPE: such as "m64n128k32"; TYPE: the type of both
// factors, such as "e4m3"; NAMES: the names of the sums. A, B and ADD are the
// names of the operands behind the sums; then come the sums themselves.
#define START_ALONG(SHAPE, TYPE, NAMES, A, B, ADD, ...)                    \
  asm volatile("{ .reg .pred add; setp.ne.s32 add, " ADD                   \
               ", 0;\n"                                                    \
               "wgmma.mma_async.sync.aligned." SHAPE ".f32." TYPE "." TYPE \
               " {" NAMES "}, " A ", " B ", add, 1, 1; }"                  \
               : __VA_ARGS__                                               \
               : "l"(a), "l"(b), "r"((int)add))
