// Philox4x32-10: random numbers by counter (Salmon, Moraes, Dror and Shaw,
// 2011). There is no state: the same counter and key give the same four words
// in every thread, in every launch.
//
//   philox            four words of 32 bits for a counter and a key
//   uniform_of        a word as a number in [0, 1)
//   normal_pair       two words as two numbers of the normal distribution
//   Stream            a key, and which of the streams under it
#pragma once

// PTX ISA: lg2, sqrt
__device__ __forceinline__ float log_of_two(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float square_root(float x) {
  float y;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// --8<-- [start:philox]
__device__ __forceinline__ uint4 philox(uint4 counter, uint2 key) {
  constexpr unsigned A = 0xD2511F53, B = 0xCD9E8D57;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    counter = {__umulhi(B, counter.z) ^ counter.y ^ key.x, B * counter.z,
               __umulhi(A, counter.x) ^ counter.w ^ key.y, A * counter.x};
    key = {key.x + 0x9E3779B9, key.y + 0xBB67AE85};
  }
  return counter;
}
// --8<-- [end:philox]

// --8<-- [start:stream]
// The words of one seed and one stream, four at a time, by their index / 4.
struct Stream {
  unsigned long long seed, stream;

  __device__ __forceinline__ uint4 words(unsigned low, unsigned high) const {
    return philox({low, high, (unsigned)stream, (unsigned)(stream >> 32)},
                  {(unsigned)seed, (unsigned)(seed >> 32)});
  }
};
// --8<-- [end:stream]

// --8<-- [start:uniform]
// word / 2^32, cut to the 24 bits that a float has: never 1.
__device__ __forceinline__ float uniform_of(unsigned word) {
  return __uint2float_rz(word) * 0x1p-32f;
}
// --8<-- [end:uniform]

// Box and Muller: the radius from one word, and the angle in half turns from
// the other. u is above 0, so its logarithm is finite. It is rounded once, and
// may become 1: then the radius is 0. FAST: by the special function units.
// --8<-- [start:normal]
template <bool FAST>
__device__ __forceinline__ float2 normal_pair(unsigned a, unsigned b) {
  const float u = fmaf((float)a, 0x1p-32f, 0x1p-33f);
  const float angle = (float)(int)b * 0x1p-31f;  // -1 to 1
  float radius, sine, cosine;
  if (FAST) {
    radius = square_root(1.38629436f * fabsf(log_of_two(u)));
    __sincosf(3.14159265f * angle, &sine, &cosine);
  } else {
    radius = square_root(-2.0f * logf(u));
    sincospif(angle, &sine, &cosine);
  }
  return {radius * cosine, radius * sine};
}
// --8<-- [end:normal]
