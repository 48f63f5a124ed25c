// Histograms of bytes: how often does each of the 256 values occur? The kernels
// differ in where they keep the counters.
//
//   histogram_global    one set of counters, in L2
//   histogram_shared    one set per block, in shared memory
//   histogram_private   one set per lane, in shared memory
#include <stdint.h>

#ifndef BLOCK
#define BLOCK 1024
#endif
// What a byte adds to its shared counter. If this is an expression that the
// compiler cannot evaluate, the compiler cannot choose the instruction for the
// constant 1.
#ifndef ONE
#define ONE 1u
#endif
constexpr int BINS = 256;

// Calls count(value) for each of the 16 bytes that one load brings.
// --8<-- [start:each]
template <typename Count>
__device__ __forceinline__ void each_byte(const uint4& vector, Count count) {
  const uint32_t words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    count(words[w] & 255);
    count(words[w] >> 8 & 255);
    count(words[w] >> 16 & 255);
    count(words[w] >> 24);
  }
}
// --8<-- [end:each]

// Calls count(value) for this thread's share of all n bytes: vectors first,
// then the few bytes before the first vector and after the last.
// --8<-- [start:walk]
template <typename Count>
__device__ __forceinline__ void walk(const uint8_t* __restrict__ in,
                                     long long n, Count count) {
  const long long stride = (long long)gridDim.x * BLOCK;
  const long long first = (long long)blockIdx.x * BLOCK + threadIdx.x;
  // A vector's address has to be a multiple of 16; `in` may lie anywhere.
  const long long head = min((long long)(-(uintptr_t)in % 16), n);
  const long long vectors = (n - head) / 16, tail = head + vectors * 16;
  const uint4* wide = reinterpret_cast<const uint4*>(in + head);
  long long i = first;
  for (; i + stride < vectors; i += 2 * stride) {
    const uint4 a = wide[i], b = wide[i + stride];  // two loads in flight
    each_byte(a, count);
    each_byte(b, count);
  }
  if (i < vectors) each_byte(wide[i], count);
  const long long single = first < head ? first : tail + (first - head);
  if (single < n) count(in[single]);
}
// --8<-- [end:walk]

// Every byte is an atomic addition to one of 256 words in L2. counts has to be
// 0 before the launch; a counter holds up to 2^32 - 1.
// --8<-- [start:global]
extern "C" __global__ void histogram_global(const uint8_t* __restrict__ in,
                                            unsigned* __restrict__ counts,
                                            long long n) {
  walk(in, n, [=](uint32_t value) { atomicAdd(counts + value, 1u); });
}
// --8<-- [end:global]

// One set of counters per block, in shared memory. At the end each block adds
// them to counts by 256 atomic additions.
// --8<-- [start:shared]
extern "C" __global__ void __launch_bounds__(BLOCK)
    histogram_shared(const uint8_t* __restrict__ in,
                     unsigned* __restrict__ counts, long long n) {
  __shared__ unsigned mine[BINS];
  for (int bin = threadIdx.x; bin < BINS; bin += BLOCK) mine[bin] = 0;
  __syncthreads();
  walk(in, n, [=](uint32_t value) { atomicAdd(mine + value, ONE); });
  __syncthreads();
  for (int bin = threadIdx.x; bin < BINS; bin += BLOCK)
    if (mine[bin]) atomicAdd(counts + bin, mine[bin]);
}
// --8<-- [end:shared]

// One set of counters per lane: counter (bin, lane) is word 32 * bin + lane, so
// it lies in bank `lane`. Two lanes of a warp never meet, neither in a counter
// nor in a bank, whatever the data. 32 KiB per block.
// --8<-- [start:private]
extern "C" __global__ void __launch_bounds__(BLOCK)
    histogram_private(const uint8_t* __restrict__ in,
                      unsigned* __restrict__ counts, long long n) {
  __shared__ unsigned mine[BINS * 32];
  for (int word = threadIdx.x; word < BINS * 32; word += BLOCK) mine[word] = 0;
  __syncthreads();
  unsigned* const lane = mine + threadIdx.x % 32;
  walk(in, n, [=](uint32_t value) { atomicAdd(lane + 32 * value, 1u); });
  __syncthreads();
  for (int bin = threadIdx.x; bin < BINS; bin += BLOCK) {
    unsigned sum = 0;
    // Each thread starts at copy `bin`: lanes that start at the same copy would
    // all read the same bank.
    for (int copy = 0; copy < 32; ++copy)
      sum += mine[32 * bin + (bin + copy) % 32];
    if (sum) atomicAdd(counts + bin, sum);
  }
}
// --8<-- [end:private]
