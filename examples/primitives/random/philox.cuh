// Philox4x32-10: random numbers by counter (Salmon, Moraes, Dror and Shaw,
// 2011). There is no state: the same counter and key give the same four words
// in every thread, in every launch.
//
//   philox            four words of 32 bits for a counter and a key
//   uniform_of        a word as a number in [0, 1)
//   normal_pair       two words as two numbers of the normal distribution
//   Stream            a key, and which of the streams under it
#pragma once

// --8<-- [start:philox]
__device__ __forceinline__ uint4 philox(uint4 counter, uint2 key) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = (unsigned long long)counter.x * 0xD2511F53u;
    const unsigned long long b = (unsigned long long)counter.z * 0xCD9E8D57u;
    counter = {(unsigned)(b >> 32) ^ counter.y ^ key.x, (unsigned)b,
               (unsigned)(a >> 32) ^ counter.w ^ key.y, (unsigned)a};
    key = {key.x + 0x9E3779B9u, key.y + 0xBB67AE85u};
  }
  return counter;
}
// --8<-- [end:philox]

// --8<-- [start:stream]
// The words of one seed and one stream, by their index / 4.
struct Stream {
  unsigned long long seed, stream;

  __device__ __forceinline__ uint4 words(unsigned long long index) const {
    return philox({(unsigned)index, (unsigned)(index >> 32), (unsigned)stream,
                   (unsigned)(stream >> 32)},
                  {(unsigned)seed, (unsigned)(seed >> 32)});
  }
};
// --8<-- [end:stream]

// --8<-- [start:numbers]
// The upper 24 bits, as many as a float has: 0, 1 / 2^24, ... 1 - 1 / 2^24.
__device__ __forceinline__ float uniform_of(unsigned word) {
  return (float)(word >> 8) * 0x1p-24f;
}

// Box and Muller: the radius from one word, never 0 so that its logarithm is
// finite, and the angle from the other. FAST: by the special function units.
template <bool FAST>
__device__ __forceinline__ float2 normal_pair(unsigned a, unsigned b) {
  const float u = ((float)(a >> 8) + 0.5f) * 0x1p-24f;  // in (0, 1)
  float sine, cosine;
  if (FAST) {
    const float radius = sqrtf(-2.0f * __logf(u));
    __sincosf((float)(int)b * (3.14159265f * 0x1p-31f), &sine, &cosine);
    return {radius * cosine, radius * sine};
  }
  const float radius = sqrtf(-2.0f * logf(u));
  sincospif((float)(int)b * 0x1p-31f, &sine, &cosine);
  return {radius * cosine, radius * sine};
}
// --8<-- [end:numbers]
