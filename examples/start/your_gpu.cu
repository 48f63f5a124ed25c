// Three small kernels that measure a GPU: a copy, repeated reads, and a census of blocks.

// --8<-- [start:copy]
extern "C" __global__ void copy(const unsigned* __restrict__ src, unsigned* __restrict__ dst,
                                long long n) {
  // 64-bit: blockIdx.x * blockDim.x alone would wrap at 2^32 elements, 16 GiB.
  long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    dst[i] = src[i];
  }
}
// --8<-- [end:copy]

// --8<-- [start:read-again]
// Reads the whole array `passes` times. Every pass after the first finds it in L2, if it fits.
extern "C" __global__ void read_again(const uint4* src, unsigned* total, int vectors, int passes) {
  unsigned sum = 0;
  int stride = gridDim.x * blockDim.x;
  for (int pass = 0; pass < passes; ++pass) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += stride) {
      uint4 v = __ldcg(src + i);  // .cg: keep it out of L1, which would answer otherwise
      sum += v.x + v.y + v.z + v.w;
    }
  }
  atomicAdd(total, sum);  // unsigned sums wrap, so their order does not matter
}
// --8<-- [end:read-again]

// --8<-- [start:count-blocks]
extern "C" __global__ void count_blocks(unsigned* blocks) {
  if (threadIdx.x == 0) {
    atomicAdd(blocks, 1u);
  }
}
// --8<-- [end:count-blocks]
