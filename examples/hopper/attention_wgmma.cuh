// Products of a warpgroup by `wgmma`, for attention: D += A B. D is 64 x N in
// fp32, A is 64 x 16 and B is 16 x N, both in bf16. B lies in shared memory, A
// there or in registers. Products run beside the threads that started them.
//
//   Factor    where a factor lies in shared memory: its descriptor
//   arrived   keeps the compiler from using results too early
//   multiply  one product; A is a descriptor, or four registers
#pragma once
#include "ptx/wgmma.cuh"

// --8<-- [start:descriptor]
// A factor in shared memory. It lies in pieces of 8 rows of 128 bytes, swizzled
// as the TMA does it: the 16 bytes number c of row r stand at c ^ r. Pieces lie
// one after the other, and begin at multiples of 1024 bytes.
//
// There are two ways. 'K-major': the rows of a piece run along the depth; the
// next 16 steps of depth begin 32 bytes further on, and the next piece has the
// next 8 rows of A or columns of B. 'MN-major': the rows of a piece run along
// 64 columns of B; the next 64 columns are `parts` bytes away, and the next
// piece has the next 8 steps of depth.
//
// An address in a cluster has the number of its block in upper bits, which a
// descriptor has no place for.
struct Factor {
  unsigned low;  // of the descriptor: address and `parts`, in units of 16 bytes

  __device__ __forceinline__ explicit Factor(unsigned address,
                                             unsigned parts = 16)
      : low((address & 0x3FFFF) >> 4 | parts >> 4 << 16) {}

  // The descriptor of what begins so many bytes further on. Its upper word says
  // that pieces are 1024 bytes apart, with the swizzle of 128 bytes.
  __device__ __forceinline__ unsigned long long further(unsigned bytes) const {
    return (1ull << 62 | 64ull << 32) + (low + (bytes >> 4));
  }
};
// --8<-- [end:descriptor]

// --8<-- [start:arrived]
// The compiler does not know that results arrive later. Because of this call it
// moves nothing that uses them to before it. COUNT: registers of a lane.
template <int COUNT>
__device__ __forceinline__ void arrived(float (&d)[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

template <int COUNT>
__device__ __forceinline__ void arrived(unsigned (&a)[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) asm volatile("" : "+r"(a[i])::"memory");
}
// --8<-- [end:arrived]

// For the text of an instruction with 32, 40, ... or 96 results: C32, C40, ...
// are the names of their registers, D32, D40, ... the operands.
#define C0 "%0,%1,%2,%3,%4,%5,%6,%7"
#define C1 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define C2 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define C3 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define C4 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define C5 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define C6 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define C7 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define C8 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define C9 ",%72,%73,%74,%75,%76,%77,%78,%79"
#define C10 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define C11 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define D8(i)                                                                 \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), \
      "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define C32 C0 C1 C2 C3
#define C40 C32 C4
#define C48 C40 C5
#define C56 C48 C6
#define C64 C56 C7
#define C72 C64 C8
#define C80 C72 C9
#define C88 C80 C10
#define C96 C88 C11
#define D32 D8(0), D8(8), D8(16), D8(24)
#define D40 D32, D8(32)
#define D48 D40, D8(40)
#define D56 D48, D8(48)
#define D64 D56, D8(56)
#define D72 D64, D8(64)
#define D80 D72, D8(72)
#define D88 D80, D8(80)
#define D96 D88, D8(88)

// --8<-- [start:multiply]
// d += A B, or d = A B without `add`; both factors lie in shared memory,
// K-major. a, b: their descriptors. In d[4 * n + e] a lane holds the result of
// row 16 * warp + lane / 4 + e / 2 * 8 and column 8 * n + lane % 4 * 2 + e % 2.
#define MULTIPLY(N, NAMES, RESULTS, A, B, ADD)                              \
  __device__ __forceinline__ void multiply(float (&d)[N / 2],               \
                                           unsigned long long a,            \
                                           unsigned long long b, int add) { \
    asm volatile("{ .reg .pred p;\nsetp.ne.b32 p, " ADD                     \
                 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N               \
                 "k16.f32.bf16.bf16 {" NAMES "}, " A ", " B                 \
                 ", p, 1, 1, 0, 0; }"                                       \
                 : RESULTS                                                  \
                 : "l"(a), "l"(b), "r"(add));                               \
  }
// --8<-- [end:multiply]

MULTIPLY(64, C32, D32, "%32", "%33", "%34")
MULTIPLY(80, C40, D40, "%40", "%41", "%42")
MULTIPLY(96, C48, D48, "%48", "%49", "%50")
MULTIPLY(112, C56, D56, "%56", "%57", "%58")
MULTIPLY(128, C64, D64, "%64", "%65", "%66")
MULTIPLY(144, C72, D72, "%72", "%73", "%74")
MULTIPLY(160, C80, D80, "%80", "%81", "%82")
MULTIPLY(176, C88, D88, "%88", "%89", "%90")
MULTIPLY(192, C96, D96, "%96", "%97", "%98")

// --8<-- [start:multiply-values]
// The same with A in registers. A row of A is spread over four lanes as a row
// of results is, two numbers in a word: a[2 * i + j] holds column 8 * i +
// lane % 4 * 2 and the next column of row lane / 4 + j * 8. B is MN-major.
#define MULTIPLY_VALUES(N, NAMES, RESULTS, A0, A1, A2, A3, B, ADD)           \
  __device__ __forceinline__ void multiply(                                  \
      float (&d)[N / 2], const unsigned* a, unsigned long long b, int add) { \
    asm volatile("{ .reg .pred p;\nsetp.ne.b32 p, " ADD                      \
                 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N                \
                 "k16.f32.bf16.bf16 {" NAMES "}, {" A0 "," A1 "," A2 "," A3  \
                 "}, " B ", p, 1, 1, 1; }"                                   \
                 : RESULTS                                                   \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),       \
                   "r"(add));                                                \
  }
// --8<-- [end:multiply-values]

MULTIPLY_VALUES(64, C32, D32, "%32", "%33", "%34", "%35", "%36", "%37")
MULTIPLY_VALUES(128, C64, D64, "%64", "%65", "%66", "%67", "%68", "%69")
