// A block, or a cluster of up to eight, as coroutines of one CPU thread: warp
// after warp is taken at random and run until it waits for something. So a run
// is one of many interleavings, given by a seed, and a deadlock is noticed.
// cuda.hpp has CUDA's words for it, ptx.hpp what PTX does, run_blocks.hpp runs
// it.
#pragma once
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace machine {

struct Product {  // one wgmma that a thread has started
  float* d;
  int count;
  const unsigned* words;  // of factor A in registers, or null
  unsigned started_with[4];
  uint64_t a, b;  // descriptors
  bool add;
  long number;
  enum Type { BF16, FP16, TF32, E4M3 } type;
  bool a_across, b_across;  // lines run across the depth
};

struct InFlight {  // results that may not be touched yet
  std::vector<float> values;
  int products = 0;
};

struct Thread {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  int block = 0, index = 0;
  bool ended = false;
  const char* waits_for = "";
  std::vector<Product> open;
  std::deque<std::vector<Product>> groups;
  std::map<float*, InFlight> in_flight;
  std::map<long, const unsigned*> words;
  long products = 0;
  long stores = 0;         // groups of stores that it has closed
  long arrived_at = 0;     // what its cluster had passed when it arrived
  unsigned variables = 0;  // bytes of those in shared memory that it has met
  bool knows_previous = false;  // it has waited for the kernels before
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
constexpr int MOST_BLOCKS = 8;  // of a cluster
constexpr int MOST_WARPS = 32;  // of a block
inline bool begun[MOST_BLOCKS], ended[MOST_BLOCKS];
inline Meeting of_warp[MOST_BLOCKS * MOST_WARPS],
    of_warpgroup[MOST_BLOCKS * MOST_WARPS / 4], of_block[MOST_BLOCKS],
    of_cluster;
inline Meeting named[MOST_BLOCKS][16];
inline uint64_t exchanged[MOST_BLOCKS * MOST_WARPS][32];
// Dynamic shared memory of each block, and its variables behind it.
constexpr int DYNAMIC = 240 << 10, SHARED = 288 << 10;
alignas(1024) inline unsigned char shared_memory[MOST_BLOCKS][SHARED];

[[noreturn]] inline void fail(const char* what) {
  std::printf("%s\n", what);
  std::exit(2);
}

// The next `count` numbers of the input, and where they lie.
template <class T>
T* read(std::vector<T>& into, long count) {
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
inline int warp() { return self->block * MOST_WARPS + self->index / 32; }
inline void meet_warp() { meet(of_warp[warp()], 32, "its warp"); }
inline void meet_warpgroup() {
  meet(of_warpgroup[warp() / 4], 128, "its warpgroup");
}

template <class T>
T from_lane(T value, int other) {
  static_assert(sizeof(T) <= 8);
  std::memcpy(&exchanged[warp()][lane()], &value, sizeof(T));
  meet_warp();
  std::memcpy(&value, &exchanged[warp()][other], sizeof(T));
  meet_warp();
  return value;
}

// Shared memory. An address has the number of the block in its upper bits.
inline unsigned address_of(const void* at) {
  const long offset = (const unsigned char*)at - shared_memory[self->block];
  if (offset < 0 || offset >= SHARED) fail("an address beside shared memory");
  return self->block << 24 | offset;
}
inline int block_of(unsigned address) {
  if (address >> 24 >= MOST_BLOCKS) fail("an address in no block");
  return address >> 24;
}
inline unsigned offset_of(unsigned address) { return address & 0xffffff; }
inline unsigned in_block(unsigned address, int block) {
  return block << 24 | offset_of(address);
}
inline unsigned char* place(unsigned address) {
  if (!begun[block_of(address)])
    fail("an access to a block that has not begun");
  if (ended[block_of(address)]) fail("an access to a block that has ended");
  return shared_memory[block_of(address)] + offset_of(address);
}

// Dynamic shared memory lies at a multiple of `align`, and of no more.
inline unsigned char* dynamic_shared(int align) {
  return shared_memory[self->block] + align % 1024;
}

// Variables in shared memory, in the order in which each thread meets them.
template <class T>
T& static_shared() {
  unsigned& at = self->variables;
  at = (at + alignof(T) - 1) / alignof(T) * alignof(T);
  unsigned char* const here = shared_memory[self->block] + DYNAMIC + at;
  at += sizeof(T);
  if (DYNAMIC + at > SHARED) fail("too many variables in shared memory");
  return *reinterpret_cast<T*>(here);
}

// What the kernels before leave when they end, or null if they have ended
// already. They end some time after this kernel has begun.
inline std::function<void()> previous_ends;
inline bool previous_runs;

}  // namespace machine
