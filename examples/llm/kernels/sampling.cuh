// What sampling.cu builds on.
//
//   philox                 random numbers without a state
//   word_of                one of its four words
//   uniform, gumbel        random words as random numbers
//   ordered, from_ordered  floats as whole numbers in the same order
//   warp_scan, block_max   sums and maxima of threads
//   packed                 a score and its token in one number
#pragma once

// --8<-- [start:philox]
// Philox4x32-10 (Salmon et al., 2011): four random words for a counter of four
// words, the same as those of `sampler.philox` and cuRAND. seed: its low and
// its high half.
__device__ __forceinline__ uint4 philox(uint4 c, uint2 seed) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned low0 = 0xD2511F53u * c.x, high0 = __umulhi(0xD2511F53u, c.x);
    const unsigned low1 = 0xCD9E8D57u * c.z, high1 = __umulhi(0xCD9E8D57u, c.z);
    c = make_uint4(high1 ^ c.y ^ seed.x, low1, high0 ^ c.w ^ seed.y, low0);
    seed.x += 0x9E3779B9u, seed.y += 0xBB67AE85u;
  }
  return c;
}
// --8<-- [end:philox]

__device__ __forceinline__ unsigned word_of(uint4 words, int i) {
  return i < 2 ? (i == 0 ? words.x : words.y) : (i == 2 ? words.z : words.w);
}

// --8<-- [start:gumbel]
// A random word as a number v in (0, 1), finest near 0, and v as a number of
// the Gumbel distribution: the smallest v give the largest numbers.
__device__ __forceinline__ float uniform(unsigned word) {
  return fminf(__uint2float_rn(word) * 0x1p-32f + 0x1p-33f, 1 - 0x1p-24f);
}
__device__ __forceinline__ float gumbel(float v) { return -logf(-log1pf(-v)); }
// --8<-- [end:gumbel]

// --8<-- [start:ordered]
// The bits of floats are ordered as whole numbers, but negative ones backwards.
__device__ __forceinline__ unsigned ordered(float x) {
  const unsigned bits = __float_as_uint(x);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ float from_ordered(unsigned key) {
  return __uint_as_float(key >> 31 ? key & 0x7FFFFFFFu : ~key);
}
// --8<-- [end:ordered]

using Mass = unsigned long long;

__device__ __forceinline__ Mass warp_scan(Mass value) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int away = 1; away < 32; away *= 2) {
    const Mass other = __shfl_up_sync(~0u, value, away);
    if (lane >= away) value += other;
  }
  return value;
}

// The largest value of the block, for all threads. THREADS: of the block.
template <int THREADS>
__device__ __forceinline__ Mass block_max(Mass value) {
  __shared__ Mass of_warp[THREADS / 32];
#pragma unroll
  for (int away = 16; away > 0; away /= 2)
    value = max(value, __shfl_xor_sync(~0u, value, away));
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[threadIdx.x % (THREADS / 32)];
#pragma unroll
  for (int away = THREADS / 64; away > 0; away /= 2)
    value = max(value, __shfl_xor_sync(~0u, value, away));
  return value;
}

// A score and its token in one number: the largest number has the largest
// score, and among equal scores the first token.
__device__ __forceinline__ Mass packed(float score, int token) {
  return (Mass)ordered(score) << 32 | (0xFFFFFFFFu - token);
}
