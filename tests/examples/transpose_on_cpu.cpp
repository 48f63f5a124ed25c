// Kernels of examples/primitives/transpose on a CPU: the threads of a block take turns, each up to its next barrier; blocks
// come one after the other. KERNELS: a header with the kernels; RUN: the launch of `in`, `out` and the numbers of the command line.
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __restrict__
#define __shared__ static

using std::min;
struct Three {
  unsigned x, y, z;
};
struct uint4 {
  unsigned x, y, z, w;
};
static Three threadIdx;
static Three blockIdx;
static uint4 dynamic_shared[1 << 14];
static ucontext_t turns, *current;
static void __syncthreads() { swapcontext(current, &turns); }
static uint4 __ldcs(const uint4* at) { return *at; }
static void __stcs(uint4* at, const uint4& value) { *at = value; }

#include KERNELS

static std::function<void()> body;
static unsigned running;
static void one_thread() {
  body();
  --running;
}

template <class Body>
void launch(unsigned grid, unsigned x, unsigned y, Body work) {
  constexpr size_t STACK = 1 << 15;
  const unsigned threads = x * y;
  static std::vector<char> stacks;
  stacks.resize(threads * STACK);
  std::vector<ucontext_t> at(threads);
  body = work;
  for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) {
    for (unsigned t = 0; t < threads; ++t) {
      getcontext(&at[t]);
      at[t].uc_stack = {stacks.data() + t * STACK, 0, STACK};
      at[t].uc_link = &turns;
      makecontext(&at[t], one_thread, 0);
    }
    std::vector<bool> ended(threads);
    for (running = threads; running;)
      for (unsigned t = 0; t < threads; ++t) {
        if (ended[t]) continue;
        threadIdx = {t % x, t / x, 0};
        current = &at[t];
        const unsigned before = running;
        swapcontext(&turns, current);
        ended[t] = running < before;
      }
  }
}

// rows, columns, both pitches, group, elements by which out begins late. Prints the number of wrong elements.
int main(int, char** words) {
  const int rows = atoi(words[1]), columns = atoi(words[2]);
  const long long from = atoi(words[3]), to = atoi(words[4]);
  const int group = atoi(words[5]), late = atoi(words[6]);
  using T = ELEMENT;
  const T mark = 77;
  std::vector<uint4> first(rows * from * sizeof(T) / 16 + 4096);
  std::vector<uint4> second((columns * to + late) * sizeof(T) / 16 + 4096);
  T* const in = reinterpret_cast<T*>(first.data());
  T* const whole = reinterpret_cast<T*>(second.data());
  T* const out = IN_PLACE ? in : whole + late;
  const long long count = columns * to + late;
  for (long long k = 0; k < rows * from; ++k) in[k] = T(k * 2654435761u >> 3);
  for (long long k = 0; k < count; ++k) whole[k] = mark;
  const std::vector<T> was(in, in + rows * from);
  RUN;
  long long wrong = 0;
  for (int c = 0; c < columns; ++c)
    for (long long r = 0; r < to; ++r) {
      const T other = IN_PLACE ? was[c * from + r] : mark;
      wrong += out[c * to + r] != (r < rows ? was[r * from + c] : other);
    }
  if (!IN_PLACE)
    for (int k = 0; k < late; ++k) wrong += whole[k] != mark;
  printf("%lld\n", wrong);
}
