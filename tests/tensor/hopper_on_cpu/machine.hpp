// A block, or a cluster of up to four, as coroutines of one CPU thread: warp
// after warp is taken at random and run until it waits for something. So a run
// is one of many interleavings, given by a seed, and a deadlock is noticed.
// CUDA's words for it.
#pragma once
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)

using std::max;
using std::min;

struct Index {
  int x = 0;
};

struct Product {  // one wgmma that a thread has started
  float* d;
  int count;
  const unsigned* words;  // of factor A in registers, or null
  unsigned started_with[4];
  uint64_t a, b;
  bool add;
  long number;
  bool tf32 = false, e4m3 = false;
  bool a_across = false, b_across = false;  // lines run across the depth
  bool fp16 = false;                        // the factors, else bf16
};

struct InFlight {  // results that may not be touched yet
  std::vector<float> values;
  int products = 0;
};

struct Thread {
  ucontext_t context;
  std::vector<char> stack;
  int block = 0, index = 0;
  bool ended = false;
  const char* waits_for = "";
  std::vector<Product> open;
  std::deque<std::vector<Product>> groups;
  std::map<float*, InFlight> in_flight;
  std::map<long, const unsigned*> words;
  long products = 0;
};

struct Meeting {  // of so many threads, again and again
  int arrived = 0;
  long past = 0;
};

inline std::vector<Thread> threads;
inline Thread* self;
inline ucontext_t scheduler;
inline std::mt19937 dice;
inline long progress;
inline int block_threads, first_block, grid_blocks, running;
constexpr int MOST_BLOCKS = 4;  // of a cluster
inline bool ended[MOST_BLOCKS];
inline Meeting of_warp[MOST_BLOCKS * 32], of_block[MOST_BLOCKS], of_cluster;
inline Meeting turns[MOST_BLOCKS][16];
inline uint32_t exchanged[MOST_BLOCKS * 32][32];
alignas(1024) inline unsigned char shared_memory[MOST_BLOCKS][256 << 10];
inline void (*each_turn)();  // what else happens now and then, or null

#define threadIdx (Index{self->index})
#define blockIdx (Index{first_block + self->block})
#define gridDim (Index{grid_blocks})

[[noreturn]] inline void fail(const char* what) {
  std::printf("%s\n", what);
  std::exit(2);
}

// The next `count` numbers of the input, and where they lie.
template <class T>
inline T* read(std::vector<T>& into, long count) {
  into.resize(count);
  if ((long)std::fread(into.data(), sizeof(T), count, stdin) != count)
    fail("too little input");
  return into.data();
}

inline void yield(const char* waits_for) {
  Thread* const me = self;
  me->waits_for = waits_for;
  swapcontext(&me->context, &scheduler);
}

inline void meet(Meeting& meeting, int count, const char* name) {
  const long now = meeting.past;
  if (++meeting.arrived >= count) {
    meeting.arrived = 0, ++meeting.past, ++progress;
    return;
  }
  while (meeting.past == now) yield(name);
}

inline int lane() { return self->index % 32; }
inline int warp() { return self->block * 32 + self->index / 32; }
inline void meet_warp() { meet(of_warp[warp()], 32, "its warp"); }
inline void __syncwarp() { meet_warp(); }
inline void __syncthreads() {
  meet(of_block[self->block], block_threads, "__syncthreads");
}

inline void meet_cluster() {  // threads that have ended are not waited for
  const long now = of_cluster.past;
  ++of_cluster.arrived, ++progress;
  while (of_cluster.past == now) {
    if (of_cluster.arrived >= running)
      of_cluster.arrived = 0, ++of_cluster.past, ++progress;
    if (of_cluster.past == now) yield("its cluster");
  }
}

template <class T>
T from_lane(T value, int other) {
  static_assert(sizeof(T) == 4);
  std::memcpy(&exchanged[warp()][lane()], &value, 4);
  meet_warp();
  std::memcpy(&value, &exchanged[warp()][other], 4);
  meet_warp();
  return value;
}

template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return from_lane(value, lane() ^ mask);
}

template <class T>
T __shfl_sync(unsigned, T value, int other) {
  return from_lane(value, other);
}

inline int __shfl_up_sync(unsigned, int value, int by) {
  return from_lane(value, lane() < by ? lane() : lane() - by);
}

inline bool __any_sync(unsigned, bool value) {
  bool any = false;
  for (int i = 0; i < 32; ++i) any |= from_lane(unsigned(value), i) != 0;
  return any;
}

inline int atomicAdd(int* at, int value) { return (*at += value) - value; }
inline unsigned atomicInc(unsigned* at, unsigned most) {
  const unsigned old = *at;
  *at = old >= most ? 0 : old + 1;
  return old;
}
inline unsigned atomicExch(unsigned* at, unsigned value) {
  return std::exchange(*at, value);
}
inline unsigned atomicOr(unsigned* at, unsigned bits) {
  return std::exchange(*at, *at | bits);
}
inline unsigned clock() { return 0; }

struct __nv_bfloat16 {
  uint16_t bits;
};
struct __half {
  uint16_t bits;
};

struct uint4 {
  unsigned x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline int __float_as_int(float x) { return bits_as<int>(x); }
inline float __int_as_float(int x) { return bits_as<float>(x); }
inline float widened(unsigned bf16) { return bits_as<float>(bf16 << 16); }
inline unsigned rounded(float x) {
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
inline float __half2float(__half x) { return widened_half(x.bits); }
inline unsigned rounded_half(float x) {
  const float size = std::fabs(x);
  if (std::isnan(x)) return 0x7fff;
  const unsigned sign = std::signbit(x) ? 0x8000 : 0;
  if (size >= 65520) return sign | 0x7c00;
  const int exponent = size ? max(std::ilogb(size), -14) : -14;
  const unsigned mantissa = std::nearbyint(std::ldexp(size, 10 - exponent));
  return sign | mantissa + ((exponent + 14) << 10);
}
inline unsigned pack(float first, float second) {
  return rounded(first) | rounded(second) << 16;
}
template <class Out>
unsigned pack(float first, float second) {
  if (std::is_same<Out, __half>::value)
    return rounded_half(first) | rounded_half(second) << 16;
  return pack(first, second);
}
inline float power_of_two(float x) { return std::exp2(x); }
inline float __fdividef(float x, float y) { return x / y; }
