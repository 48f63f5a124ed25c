// Small kernels that measure a GPU.
//
//   copy           a copy, one word per thread
//   copy_wide      a copy by loads of 16 bytes
//   read_again     reads that find their array in L2
//   count_blocks   counts the blocks that ran

// --8<-- [start:copy]
extern "C" __global__ void copy(const unsigned* __restrict__ src,
                                unsigned* __restrict__ dst, long long n) {
  // 64-bit: blockIdx.x * blockDim.x alone would wrap at 2^32 elements, 16 GiB.
  long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    dst[i] = src[i];
  }
}
// --8<-- [end:copy]

// --8<-- [start:copy-wide]
#ifndef LOADS
#define LOADS 1  // 16-byte loads that a thread sends off before it stores
#endif
// src and dst begin at multiples of 16 bytes, as every allocation does. n can
// be any number.
extern "C" __global__ void copy_wide(const unsigned* __restrict__ src,
                                     unsigned* __restrict__ dst, long long n) {
  const uint4* src4 = reinterpret_cast<const uint4*>(src);
  uint4* dst4 = reinterpret_cast<uint4*>(dst);
  long long vectors = n / 4;
  long long block = blockIdx.x;  // 64-bit, as above
  long long first = block * LOADS * blockDim.x + threadIdx.x;
  uint4 v[LOADS];
#pragma unroll
  for (int k = 0; k < LOADS; ++k) {
    long long i = first + k * blockDim.x;
    if (i < vectors) v[k] = src4[i];
  }
#pragma unroll
  for (int k = 0; k < LOADS; ++k) {
    long long i = first + k * blockDim.x;
    if (i < vectors) dst4[i] = v[k];
  }
  // Up to three elements are left over: one each for the first threads.
  if (first < n % 4) dst[4 * vectors + first] = src[4 * vectors + first];
}
// --8<-- [end:copy-wide]

// --8<-- [start:read-again]
// Reads the array `passes` times. All passes but the first find it in L2, if it
// fits.
extern "C" __global__ void read_again(const uint4* src, unsigned* total,
                                      int vectors, int passes) {
  unsigned sum = 0;
  size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (int pass = 0; pass < passes; ++pass) {
    size_t first = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (size_t i = first; i < vectors; i += stride) {
      uint4 v = __ldcg(src + i);  // .cg: from L2, not from L1
      sum += v.x + v.y + v.z + v.w;
    }
  }
  atomicAdd(total, sum);  // wraps, so the order does not matter
}
// --8<-- [end:read-again]

// --8<-- [start:count-blocks]
extern "C" __global__ void count_blocks(unsigned* blocks) {
  if (threadIdx.x == 0) {
    atomicAdd(blocks, 1u);
  }
}
// --8<-- [end:count-blocks]
