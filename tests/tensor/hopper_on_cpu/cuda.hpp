// CUDA's words, for the machine.
#pragma once
#include <type_traits>
#include <utility>

#include "machine.hpp"

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __restrict__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)

using std::max;
using std::min;

struct Index {
  int x = 0;
};
#define threadIdx (Index{machine::self->index})
#define blockIdx (Index{machine::first_block + machine::self->block})
#define blockDim (Index{machine::block_threads})
#define gridDim (Index{machine::grid_blocks})

inline void __syncwarp() { machine::meet_warp(); }
inline void __syncthreads() {
  machine::meet(machine::of_block[machine::self->block], machine::block_threads,
                "__syncthreads");
}
inline void __threadfence() {}

// Words of other lanes.
template <class T>
T __shfl_sync(unsigned, T value, int other) {
  return machine::from_lane(value, other);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return machine::from_lane(value, machine::lane() ^ mask);
}
// Any four of the eight bytes of two words, a digit of the selector for each.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long both = (unsigned long long)y << 32 | x;
  unsigned found = 0;
  for (int i = 0; i < 4; ++i)
    found |= (unsigned)(both >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
  return found;
}
template <class T>
T __shfl_up_sync(unsigned, T value, int by) {
  return machine::from_lane(value, max(machine::lane() - by, 0));
}
inline bool __any_sync(unsigned, bool value) {
  bool any = false;
  for (int i = 0; i < 32; ++i)
    any |= machine::from_lane(unsigned(value), i) != 0;
  return any;
}

// Memory.
inline unsigned __cvta_generic_to_shared(const void* at) {
  return machine::address_of(at);
}
inline void* __cvta_generic_to_global(void* at) { return at; }
template <class T>
T __ldg(const T* from) {
  return *from;
}
template <class T>
T __ldcg(const T* from) {
  return *from;
}
template <class T>
void __stcg(T* to, T x) {
  *to = x;
}
template <class T>
T atomicAdd(T* at, long long value) {
  return std::exchange(*at, *at + value);
}
inline unsigned atomicInc(unsigned* at, unsigned most) {
  return std::exchange(*at, *at >= most ? 0 : *at + 1);
}
inline unsigned atomicExch(unsigned* at, unsigned value) {
  return std::exchange(*at, value);
}
inline unsigned atomicOr(unsigned* at, unsigned bits) {
  return std::exchange(*at, *at | bits);
}
#define clock() 0u

struct int2 {
  int x, y;
};
inline int2 make_int2(int x, int y) { return {x, y}; }
struct float2 {
  float x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
struct float4 {
  float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}
struct uint4 {
  unsigned x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}

// Numbers.
template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, int bits) {
  return ((uint64_t)high << 32 | low) >> bits;
}
inline float __fdividef(float x, float y) { return x / y; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }

inline float widened(unsigned bf16) { return bits_as<float>(bf16 << 16); }
inline unsigned rounded(float x) {  // to bf16
  const uint32_t bits = bits_as<uint32_t>(x);
  return std::isnan(x) ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
inline float widened_half(unsigned half) {
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  const float size = exponent == 31 ? (mantissa ? NAN : INFINITY)
                     : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                                    : std::ldexp(mantissa, -24);
  return half & 0x8000 ? -size : size;
}
inline unsigned rounded_half(float x) {
  const float size = std::fabs(x);
  if (std::isnan(x)) return 0x7fff;
  const unsigned sign = std::signbit(x) ? 0x8000 : 0;
  if (size >= 65520) return sign | 0x7c00;
  const int exponent = size ? max(std::ilogb(size), -14) : -14;
  const unsigned mantissa = std::nearbyint(std::ldexp(size, 10 - exponent));
  return sign | mantissa + ((exponent + 14) << 10);
}
inline float of_e4m3(unsigned code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const float size = exponent ? std::ldexp(8 + mantissa, exponent - 10)
                              : std::ldexp(mantissa, -9);
  return (code & 127) == 127 ? NAN : code & 128 ? -size : size;
}

struct __nv_bfloat16 {
  uint16_t bits;
  __nv_bfloat16() = default;
  __nv_bfloat16(float x) : bits(rounded(x)) {}
};
struct __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
struct __half {
  uint16_t bits;
};
inline float __bfloat162float(__nv_bfloat16 x) { return widened(x.bits); }
inline float __half2float(__half x) { return widened_half(x.bits); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }

// A map of a tensor for the TMA, as the driver makes it. Sizes are counted in
// elements, from the axis whose elements lie side by side.
struct CUtensorMap {
  void* data;
  int element;  // bytes
  std::vector<int> sizes, box;
  std::vector<long> pitches;  // from one to the next, along each axis
  bool swizzled = true;       // by `span` bytes
  int span = 128;
  // In im2col mode: the box in which windows begin, as distances from the
  // image's corners, the steps from window to window, and how many there are in
  // a copy. Axes as above, of the two of an image.
  struct Windows {
    int lower[2], upper[2], steps[2], count = 0;
  } windows = {};
};

// The map of a matrix, rows x columns, with boxes of lines of 128 bytes.
template <class T>
CUtensorMap map_of(const std::vector<T>& matrix, int rows, int columns,
                   int box_rows) {
  return {(void*)matrix.data(),
          sizeof(T),
          {columns, rows},
          {int(128 / sizeof(T)), box_rows},
          {1, columns}};
}

// Votes: each lane says a word, and then reads those of all.
namespace machine {
inline void say_word(uint64_t word) {
  exchanged[warp()][lane()] = word;
  meet_warp();
}
}  // namespace machine
inline unsigned __ballot_sync(unsigned, bool one) {
  machine::say_word(one);
  unsigned ones = 0;
  for (int i = 0; i < 32; ++i)
    ones |= (unsigned)machine::exchanged[machine::warp()][i] << i;
  machine::meet_warp();
  return ones;
}
inline unsigned __match_any_sync(unsigned, unsigned word) {
  machine::say_word(word);
  unsigned same = 0;
  for (int i = 0; i < 32; ++i)
    same |= unsigned(machine::exchanged[machine::warp()][i] == word) << i;
  machine::meet_warp();
  return same;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
inline int __ffs(unsigned x) { return __builtin_ffs(x); }
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
// A barrier that tells whether `value` is true for any thread of the block.
inline bool any_of_block[64];
inline bool __syncthreads_or(bool value) {
  bool& any = any_of_block[machine::self->block];
  __syncthreads();
  if (machine::self->index == 0) any = false;
  __syncthreads();
  if (value) any = true;
  __syncthreads();
  const bool found = any;
  __syncthreads();
  return found;
}
