// Products of a warpgroup with factors in e4m3.
//
//   kept            keeps a number in a register
//   wgmma_e4m3      one product: 64 rows, N columns, 32 steps of depth
//   word_of         the lower word of a descriptor
//   multiply_stage  the products of a stage: 128 steps of depth
#pragma once
#include "wgmma.cuh"

constexpr int BK = 128;  // steps of depth in a stage: a line of 128 bytes

// --8<-- [start:kept]
// Returns x, a number that is the same in all threads of a warp. The compiler
// keeps it in a register, for it cannot compute it again where it is used.
__device__ __forceinline__ unsigned kept(unsigned x) {
  return __shfl_sync(0xffffffff, x, 0);
}
// --8<-- [end:kept]

// --8<-- [start:wgmma]
// Start sum (+)= A B: A is 64 x 32, B is 32 x N, both e4m3 in shared memory.
// Their lines run along the depth, as all lines of 8-bit factors must. Of N
// columns a thread has N / 2 sums, which lie as those of bf16 products do.
//
// PTX ISA: wgmma.mma_async
// --8<-- [end:wgmma]
__device__ __forceinline__ void wgmma_e4m3(float (&sum)[64],
                                           unsigned long long a,
                                           unsigned long long b, bool add) {
  START_ALONG("m64n128k32", "e4m3", NAMES64, "%64", "%65", "%66", SUM32(0),
              SUM32(32));
}

__device__ __forceinline__ void wgmma_e4m3(float (&sum)[96],
                                           unsigned long long a,
                                           unsigned long long b, bool add) {
  START_ALONG("m64n192k32", "e4m3", NAMES96, "%96", "%97", "%98", SUM32(0),
              SUM32(32), SUM32(64));
}

__device__ __forceinline__ void wgmma_e4m3(float (&sum)[128],
                                           unsigned long long a,
                                           unsigned long long b, bool add) {
  START_ALONG("m64n256k32", "e4m3", NAMES128, "%128", "%129", "%130", SUM32(0),
              SUM32(32), SUM32(64), SUM32(96));
}

// --8<-- [start:multiply]
// The lower word of the descriptor of what lies at this address. For what lies
// 16 bytes further on, it is greater by 1. The upper word is the same for all.
__device__ __forceinline__ unsigned word_of(unsigned address) {
  return (unsigned)Descriptor(address).bits;
}

// sum (+)= the product of 64 rows of A and 2 * SIZE columns of B, one stage
// deep: four times 32 steps. a, b: lower words of descriptors. The products are
// started and closed as a group; nothing waits for them here.
template <int SIZE>
__device__ __forceinline__ void multiply_stage(float (&sum)[SIZE], unsigned a,
                                               unsigned b, bool add) {
  const auto upper = Descriptor(0).bits >> 32 << 32;
  fence_sums();
#pragma unroll
  for (int i = 0; i < BK / 32; ++i)  // 32 steps are 32 bytes
    wgmma_e4m3(sum, upper | (a + i * 2), upper | (b + i * 2), add || i > 0);
  close_products();
}
// --8<-- [end:multiply]
