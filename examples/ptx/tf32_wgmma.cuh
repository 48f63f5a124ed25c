// Products of a warpgroup with fp32 factors, multiplied as TF32.
//
//   wgmma_tf32           one product: 64 rows, N columns, 8 steps of depth
//   multiply_stage_tf32  the products of a stage: 32 steps of depth
#pragma once
#include "wgmma.cuh"

constexpr int DEPTH = 32;  // steps of depth in a stage: a line of 128 bytes

// --8<-- [start:wgmma]
// Start sum (+)= A B: A is 64 x 8, B is 8 x N, both words of 32 bits in shared
// memory. Their lines run along the depth, as all lines but those of 16-bit
// factors must. Of each word the tensor cores read the upper 19 bits. Of N
// columns a thread has N / 2 sums, which lie as those of bf16 products do.
//
// PTX ISA: wgmma.mma_async
// --8<-- [end:wgmma]
__device__ __forceinline__ void wgmma_tf32(float (&sum)[32],
                                           unsigned long long a,
                                           unsigned long long b, bool add) {
  START_ALONG("m64n64k8", "tf32", NAMES32, "%32", "%33", "%34", SUM32(0));
}

__device__ __forceinline__ void wgmma_tf32(float (&sum)[64],
                                           unsigned long long a,
                                           unsigned long long b, bool add) {
  START_ALONG("m64n128k8", "tf32", NAMES64, "%64", "%65", "%66", SUM32(0),
              SUM32(32));
}

__device__ __forceinline__ void wgmma_tf32(float (&sum)[96],
                                           unsigned long long a,
                                           unsigned long long b, bool add) {
  START_ALONG("m64n192k8", "tf32", NAMES96, "%96", "%97", "%98", SUM32(0),
              SUM32(32), SUM32(64));
}

__device__ __forceinline__ void wgmma_tf32(float (&sum)[128],
                                           unsigned long long a,
                                           unsigned long long b, bool add) {
  START_ALONG("m64n256k8", "tf32", NAMES128, "%128", "%129", "%130", SUM32(0),
              SUM32(32), SUM32(64), SUM32(96));
}

// --8<-- [start:multiply]
// sum (+)= the product of 64 rows of A and 2 * SIZE columns of B, one stage
// deep. a, b: where they begin in shared memory. The products are started and
// closed as a group; nothing waits for them here.
template <int SIZE>
__device__ __forceinline__ void multiply_stage_tf32(float (&sum)[SIZE],
                                                    unsigned a, unsigned b,
                                                    bool add) {
  const Descriptor of_a(a), of_b(b);
  fence_sums();
#pragma unroll
  for (int i = 0; i < DEPTH / 8; ++i)  // 8 steps are 32 bytes
    wgmma_tf32(sum, of_a.at(i * 32), of_b.at(i * 32), add || i > 0);
  close_products();
}
// --8<-- [end:multiply]
