// requires: sm_90
// @instance chase_shared<true>
// @instance chase_shared<false>
// @instance read_other<true>
// @instance read_other<false>
// Blocks of a cluster read each other's shared memory: how long one load takes,
// and how many bytes come in a cycle.
#include "ptx/cluster.cuh"

#ifndef CLUSTER
#define CLUSTER 8
#endif

// --8<-- [start:load]
// PTX ISA: ld
template <bool CLUSTERED>
__device__ __forceinline__ unsigned load_word(unsigned at) {
  unsigned value;
  if (CLUSTERED)
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(at));
  else
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(at));
  return value;
}

// PTX ISA: ld
template <bool CLUSTERED>
__device__ __forceinline__ uint4 load_four(unsigned at) {
  uint4 v;
  if (CLUSTERED)
    asm volatile("ld.shared::cluster.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(at));
  else
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(at));
  return v;
}
// --8<-- [end:load]

// --8<-- [start:chase]
// Block 0 walks a ring in the shared memory of block `target` of its cluster.
template <bool CLUSTERED>
__global__ void __cluster_dims__(CLUSTER)
    chase_shared(const unsigned* __restrict__ offsets, int steps, int target,
                 long long* __restrict__ out) {
  constexpr int WORDS = 1024;
  __shared__ unsigned ring[WORDS];  // of each word the place of the next one
  for (int i = threadIdx.x; i < WORDS; i += blockDim.x) ring[i] = offsets[i];
  sync_cluster();
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    const unsigned there =
        CLUSTERED ? in_block(ring, target) : shared_address(ring);
    unsigned at = 0;
    const long long start = clock64();
    for (int i = 0; i < steps; ++i) at = load_word<CLUSTERED>(there + at);
    out[0] = clock64() - start;
    out[1] = at;
  }
  sync_cluster();  // nobody leaves while its memory is still read
}
// --8<-- [end:chase]

// --8<-- [start:read]
// Each block reads 64 KB of the block `shift` places further, `passes` times.
template <bool CLUSTERED>
__global__ void __cluster_dims__(CLUSTER) __launch_bounds__(1024)
    read_other(int shift, int passes, unsigned* __restrict__ sums,
               long long* __restrict__ spent) {
  constexpr int VECTORS = 4096;
  extern __shared__ uint4 data[];
  const unsigned rank = rank_in_cluster();
  for (int i = threadIdx.x; i < VECTORS; i += blockDim.x)
    data[i] = make_uint4(rank, i, 3 * i, 7);
  sync_cluster();
  const unsigned from = CLUSTERED ? in_block(data, (rank + shift) % CLUSTER)
                                  : shared_address(data);
  unsigned sum = 0;
  const long long start = clock64();
  for (int pass = 0; pass < passes; ++pass) {
    // Other places in each pass: what does not change, the compiler reads once.
    const unsigned i = (threadIdx.x + 32 * pass) % 1024;
    uint4 v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      v[k] = load_four<CLUSTERED>(from + 16 * (i + k * 1024));
#pragma unroll
    for (int k = 0; k < 4; ++k) sum += v[k].x + v[k].y + v[k].z + v[k].w;
  }
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) spent[blockIdx.x] = clock64() - start;
  sync_cluster();
}
// --8<-- [end:read]
