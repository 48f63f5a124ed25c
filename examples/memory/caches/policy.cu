// requires: sm_80
// @instance read_with_policy<0>
// @instance read_with_policy<1>
// Loads that tell the L2 cache what may go first, and what should stay.

enum Policy { FIRST, LAST };

// --8<-- [start:policy]
template <int POLICY>
__device__ unsigned long long policy() {
  unsigned long long made;
  if (POLICY == FIRST)
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(made));
  else
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(made));
  return made;
}

__device__ uint4 load(const uint4* at, unsigned long long policy) {
  uint4 v;
  asm volatile("ld.global.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], %5;"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at), "l"(policy));
  return v;
}
// --8<-- [end:policy]

// As read_slices in caches.cu, once, and with a policy.
template <int POLICY>
__global__ void __launch_bounds__(1024)
    read_with_policy(const uint4* room, int vectors,
                     unsigned* __restrict__ sums) {
  const uint4* mine = room + (size_t)blockIdx.x * vectors;
  const unsigned long long made = policy<POLICY>();
  unsigned sum = 0;
  for (int i = threadIdx.x; i < vectors; i += 4 * blockDim.x) {
    uint4 v[4] = {};
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (i + k * blockDim.x < vectors)
        v[k] = load(mine + i + k * blockDim.x, made);
#pragma unroll
    for (int k = 0; k < 4; ++k) sum += v[k].x + v[k].y + v[k].z + v[k].w;
  }
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
