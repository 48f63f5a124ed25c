// The slices of caches.cu once more: no warp begins a pass before all have
// ended the one before.

// --8<-- [start:together]
// As read_slices<PLAIN>, with a barrier after each pass.
extern "C" __global__ void __launch_bounds__(1024)
    read_together(const uint4* room, int vectors, int passes,
                  unsigned* __restrict__ sums, long long* __restrict__ spent) {
  const uint4* mine = room + (size_t)blockIdx.x * vectors;
  unsigned sum = 0;
  const long long start = clock64();
  for (int pass = 0; pass < passes; ++pass) {
    for (int i = threadIdx.x; i < vectors; i += 4 * blockDim.x) {
      uint4 v[4] = {};
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (i + k * blockDim.x < vectors)
          asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                       : "=r"(v[k].x), "=r"(v[k].y), "=r"(v[k].z), "=r"(v[k].w)
                       : "l"(mine + i + k * blockDim.x));
#pragma unroll
      for (int k = 0; k < 4; ++k) sum += v[k].x + v[k].y + v[k].z + v[k].w;
    }
    __syncthreads();
  }
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  if (threadIdx.x == 0) spent[blockIdx.x] = clock64() - start;
}
// --8<-- [end:together]
