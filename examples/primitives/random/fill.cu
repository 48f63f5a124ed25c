// Arrays of random numbers. Element i depends on the seed, the stream and i
// alone: not on the grid, the block or the number of elements.
//
//   fill       words, uniform or normal numbers, 16 bytes per store
//   fill_one   one element per thread, for arrays that begin anywhere
//   lcg        for comparison: each thread has a state of its own
//   known      philox of counters and keys that are given
//
// KIND: 0 words; 1 uniform in [0, 1); 2 normal; 3 normal with the special
// function units.
//
// @instance fill<0,4,256>
// @instance fill<1,4,256>
// @instance fill<2,8,256>
// @instance fill<3,8,256>
// @instance fill_one<1>
#include "philox.cuh"

// --8<-- [start:four]
template <int KIND>
__device__ __forceinline__ uint4 four(uint4 w) {
  if (KIND == 0) return w;
  float4 v;
  if (KIND == 1) {
    v = {uniform_of(w.x), uniform_of(w.y), uniform_of(w.z), uniform_of(w.w)};
  } else {
    const float2 a = normal_pair<KIND == 3>(w.x, w.y);
    const float2 b = normal_pair<KIND == 3>(w.z, w.w);
    v = {a.x, a.y, b.x, b.y};
  }
  return reinterpret_cast<const uint4&>(v);
}
// --8<-- [end:four]

// out: n elements of 4 bytes, aligned to 16 bytes. EACH: vectors of a thread;
// EACH * BLOCK is a power of two, so that all vectors of a block have the same
// high word, and no addition to the low one overflows.
// --8<-- [start:kernel]
template <int KIND, int EACH, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    fill(unsigned* __restrict__ out, long long n, unsigned long long seed,
         unsigned long long stream) {
  static_assert((EACH * BLOCK & (EACH * BLOCK - 1)) == 0);
  const Stream numbers = {seed, stream};
  const long long first = (long long)blockIdx.x * (EACH * BLOCK);
  const unsigned low = (unsigned)first + threadIdx.x, high = first >> 32;
  if (4 * (first + EACH * BLOCK) <= n) {  // all blocks but the last
    uint4* const to = reinterpret_cast<uint4*>(out) + first + threadIdx.x;
#pragma unroll
    for (int e = 0; e < EACH; ++e)
      to[e * BLOCK] = four<KIND>(numbers.words(low + e * BLOCK, high));
    return;
  }
  for (int e = 0; e < EACH; ++e) {
    const uint4 w = four<KIND>(numbers.words(low + e * BLOCK, high));
    const unsigned last[4] = {w.x, w.y, w.z, w.w};
    const long long at = 4 * (first + threadIdx.x + e * BLOCK);
    for (int k = 0; k < 4; ++k)
      if (at + k < n) out[at + k] = last[k];
  }
}
// --8<-- [end:kernel]

template <int KIND>
__global__ void fill_one(unsigned* __restrict__ out, long long n,
                         unsigned long long seed, unsigned long long stream) {
  const Stream numbers = {seed, stream};
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const uint4 w = four<KIND>(numbers.words(i / 4, i >> 34));
  const int k = i % 4;
  out[i] = k == 0 ? w.x : k == 1 ? w.y : k == 2 ? w.z : w.w;
}

// A linear congruential generator per thread, seeded by the thread's number:
// what an element gets depends on how many threads there are.
// --8<-- [start:lcg]
extern "C" __global__ void lcg(float* __restrict__ out, long long n,
                               unsigned seed) {
  const long long stride = (long long)gridDim.x * blockDim.x;
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  unsigned state = seed + (unsigned)i;
  for (; i < n; i += stride) {
    state = 1664525u * state + 1013904223u;
    out[i] = (float)(state >> 8) * 0x1p-24f;
  }
}
// --8<-- [end:lcg]

// words: 4 for each counter of 4 words and key of 2 words.
extern "C" __global__ void known(const unsigned* __restrict__ counters,
                                 const unsigned* __restrict__ keys,
                                 unsigned* __restrict__ words, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const uint4 w = philox({counters[4 * i], counters[4 * i + 1],
                          counters[4 * i + 2], counters[4 * i + 3]},
                         {keys[2 * i], keys[2 * i + 1]});
  words[4 * i] = w.x;
  words[4 * i + 1] = w.y;
  words[4 * i + 2] = w.z;
  words[4 * i + 3] = w.w;
}
