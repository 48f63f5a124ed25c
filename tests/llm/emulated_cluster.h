// A cluster of blocks on the CPU, as far as softmax_cluster.cu needs it: each thread is a fiber that runs until it waits.
// Which block goes on is drawn at random, and a block may run to its end while another has not begun. Shared memory is
// full of NaN before a block begins and after it has left, so that what is read too early or too late is seen.
#pragma once
#include <ucontext.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)

using std::max;
using std::min;

struct Index {
  unsigned x;
};
inline Index threadIdx, blockIdx, blockDim;

struct float2 {
  float x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float __fdividef(float a, float b) { return a / b; }

struct __nv_bfloat16 {
  uint16_t bits;
  __nv_bfloat16() = default;
  __nv_bfloat16(float x) {
    uint32_t all;
    std::memcpy(&all, &x, 4);
    bits = x != x ? 0x7fc0 : (all + 0x7fff + (all >> 16 & 1)) >> 16;
  }
};
struct __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
inline float __bfloat162float(__nv_bfloat16 x) {
  const uint32_t all = (uint32_t)x.bits << 16;
  float value;
  std::memcpy(&value, &all, 4);
  return value;
}
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return {x}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }

namespace emulated {

constexpr int SHARED = 1024;  // bytes of a block
struct Block;
struct Fiber {
  ucontext_t at;
  std::unique_ptr<char[]> stack;
  Block* block;
  unsigned thread;
  int arrivals = 0;  // at the cluster's barrier
  int shuffles = 0;
  bool done = false;
};

struct Barrier {
  int need, arrived = 0, passed = 0;
  std::vector<Fiber*> waiting;
  void arrive();
};

struct Block {
  unsigned number;
  std::vector<Fiber> fibers;
  std::vector<Fiber*> ready;
  Barrier all;
  std::vector<Barrier> warps;
  std::vector<std::array<float, 32>> shuffled[2];
  alignas(16) unsigned char shared[SHARED];
  int left;
};

inline std::vector<Block>* cluster;
inline Barrier of_cluster;
inline Fiber* running;
inline ucontext_t scheduler;
inline std::function<void()> kernel;

inline void Barrier::arrive() {
  if (++arrived < need) return;
  arrived = 0, ++passed;
  for (Fiber* fiber : waiting) fiber->block->ready.push_back(fiber);
  waiting.clear();
}
// Until the barrier has been passed `times` times.
inline void wait(Barrier& barrier, int times) {
  if (barrier.passed >= times) return;
  barrier.waiting.push_back(running);
  Fiber* const self = running;
  swapcontext(&self->at, &scheduler);
}
inline void meet(Barrier& barrier) {
  const int times = barrier.passed + 1;
  barrier.arrive();
  wait(barrier, times);
}

inline void begin() {
  kernel();
  running->done = true;
  if (--running->block->left == 0)
    std::memset(running->block->shared, 0xff, SHARED);
}

// All clusters of a grid, one after the other. False: all wait for each other.
inline bool launch(unsigned grid, unsigned threads, unsigned blocks, unsigned seed, std::function<void()> what) {
  std::mt19937 random(seed);
  kernel = what;
  blockDim.x = threads;
  for (unsigned first = 0; first < grid; first += blocks) {
    std::vector<Block> all(blocks);
    cluster = &all;
    of_cluster = Barrier{(int)(blocks * threads)};
    for (unsigned b = 0; b < blocks; ++b) {
      Block& block = all[b];
      block.number = first + b;
      block.all.need = threads;
      block.warps.assign(threads / 32, Barrier{32});
      for (auto& of : block.shuffled) of.resize(threads / 32);
      std::memset(block.shared, 0xff, SHARED);
      block.left = threads;
      block.fibers = std::vector<Fiber>(threads);
      for (unsigned t = 0; t < threads; ++t) {
        Fiber& fiber = block.fibers[t];
        fiber.block = &block, fiber.thread = t;
        fiber.stack.reset(new char[1 << 15]);
        getcontext(&fiber.at);
        fiber.at.uc_stack.ss_sp = fiber.stack.get();
        fiber.at.uc_stack.ss_size = 1 << 15;
        fiber.at.uc_link = &scheduler;
        makecontext(&fiber.at, begin, 0);
        block.ready.push_back(&fiber);
      }
    }
    unsigned left = blocks;
    Block* block = &all[random() % blocks];
    for (int idle = 0; left;) {
      // Seldom another block while this one can go on: they drift apart.
      if (block->ready.empty() || random() % 4096 == 0) block = &all[random() % blocks];
      if (block->ready.empty()) {
        if (++idle > 100000) return false;
        continue;
      }
      idle = 0;
      auto& ready = block->ready;
      std::swap(ready[random() % ready.size()], ready.back());
      running = ready.back();
      ready.pop_back();
      threadIdx.x = running->thread, blockIdx.x = block->number;
      swapcontext(&scheduler, &running->at);
      left -= running->done && block->left == 0;
    }
  }
  return true;
}

// The memory of a __shared__ variable of this block: `at` bytes from its start.
template <typename T>
T& shared(int at) {
  return *reinterpret_cast<T*>(running->block->shared + at);
}

}  // namespace emulated

inline void __syncthreads() { emulated::meet(emulated::running->block->all); }

inline float __shfl_xor_sync(unsigned, float value, int away) {
  emulated::Fiber* const self = emulated::running;
  auto& slots = self->block->shuffled[self->shuffles++ % 2][self->thread / 32];
  slots[self->thread % 32] = value;
  emulated::meet(self->block->warps[self->thread / 32]);
  return slots[self->thread % 32 ^ away];
}

// cluster.cuh
inline unsigned in_block(const void* at, int rank) {
  const auto* const from = static_cast<const unsigned char*>(at);
  return rank << 16 | (unsigned)(from - emulated::running->block->shared);
}
inline float2 load_pair(unsigned there) {
  float2 pair;
  std::memcpy(&pair, (*emulated::cluster)[there >> 16].shared + (there & 0xffff), sizeof pair);
  return pair;
}
inline void arrive() {
  ++emulated::running->arrivals;
  emulated::of_cluster.arrive();
}
inline void wait_for_cluster() { emulated::wait(emulated::of_cluster, emulated::running->arrivals); }
