// Pinned memory: a copy whose ends may lie in the host's memory, a kernel that
// waits for a word of the host, and one that fetches rows of a table.

#ifndef VECTORS
#define VECTORS 4  // loads of 16 bytes that a thread issues one after the other
#endif
#ifndef STREAMING
#define STREAMING 0
#endif

__device__ uint4 load(const uint4* at) {
#if STREAMING
  return __ldcs(at);  // will not be read again
#else
  return *at;
#endif
}

__device__ void store(uint4* at, uint4 value) {
#if STREAMING
  __stcs(at, value);
#else
  *at = value;
#endif
}

// --8<-- [start:copy]
// Both arrays begin at a multiple of 16 bytes, and share no memory. With a
// block for each tile, the outer loop runs once; with fewer, blocks walk on.
extern "C" __global__ void copy(const float* __restrict__ in,
                                float* __restrict__ out, size_t n) {
  const uint4* from = (const uint4*)in;
  uint4* to = (uint4*)out;
  const size_t vectors = n / 4, tile = (size_t)VECTORS * blockDim.x;
  for (size_t start = blockIdx.x * tile; start < vectors;
       start += gridDim.x * tile) {
    const size_t first = start + threadIdx.x;
    uint4 v[VECTORS];
#pragma unroll
    for (int k = 0; k < VECTORS; ++k)
      if (first + k * blockDim.x < vectors)
        v[k] = load(from + first + k * blockDim.x);
#pragma unroll
    for (int k = 0; k < VECTORS; ++k)
      if (first + k * blockDim.x < vectors)
        store(to + first + k * blockDim.x, v[k]);
  }
  const size_t rest = 4 * vectors + threadIdx.x;  // at most three floats
  if (blockIdx.x == 0 && rest < n) out[rest] = in[rest];
}
// --8<-- [end:copy]

__device__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// --8<-- [start:wait-for]
// One thread that waits until the host writes `number`, but `most_ns` at most.
// The word lies in the host's memory: volatile, so each turn reads it anew.
extern "C" __global__ void wait_for(unsigned* word, unsigned number,
                                    unsigned long long most_ns) {
  const unsigned long long begin = nanoseconds();
  while (*(volatile unsigned*)word != number &&
         nanoseconds() - begin < most_ns) {
  }
}
// --8<-- [end:wait-for]

// --8<-- [start:fetch-rows]
// A warp for each row of 128 floats: out[i] = table[rows[i]].
extern "C" __global__ void fetch_rows(const float* __restrict__ table,
                                      const int* __restrict__ rows,
                                      float* __restrict__ out, int count) {
  const int lane = threadIdx.x % 32;
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (i >= count) return;
  const uint4* from = (const uint4*)table + (size_t)rows[i] * 32;
  ((uint4*)out)[(size_t)i * 32 + lane] = from[lane];
}
// --8<-- [end:fetch-rows]
