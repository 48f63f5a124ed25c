// Kernels of examples/images/winograd/products.cu on a CPU: the threads of a block take turns, each up to its next barrier; blocks
// come one after the other, and copies are there at once. A library for ctypes; KERNELS: a header with the kernels.
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__

using std::max;
using std::min;
struct Three {
  unsigned x, y, z;
};
struct float4 {
  float x, y, z, w;
};
struct int2 {
  int x, y;
};
static int2 make_int2(int x, int y) { return {x, y}; }
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static Three threadIdx, blockIdx, gridDim;
alignas(16) static float4 dynamic_shared[1 << 12];
static ucontext_t turns, *current;
static void __syncthreads() { swapcontext(current, &turns); }
static size_t __cvta_generic_to_shared(const void* at) { return (const char*)at - (const char*)dynamic_shared; }
template <int WORDS>
static void copy_async(unsigned to, const float* from, int bytes, bool wanted) {
  float* const words = reinterpret_cast<float*>(reinterpret_cast<char*>(dynamic_shared) + to);
  for (int i = 0; wanted && i < WORDS; ++i) words[i] = i * 4 < bytes ? from[i] : 0.0f;
}
static void commit() {}
template <int GROUPS>
static void wait_for_all_but() {}

#include KERNELS

static std::function<void()> body;
static unsigned running;
static void one_thread() {
  body();
  --running;
}

template <class Body>
static void launch(unsigned x, unsigned y, unsigned threads, Body work) {
  constexpr size_t STACK = 1 << 15;
  std::vector<char> stacks(threads * STACK);
  std::vector<ucontext_t> at(threads);
  body = work;
  gridDim = {x, y, 1};
  for (blockIdx.y = 0; blockIdx.y < y; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < x; ++blockIdx.x) {
      for (float4& four : dynamic_shared) four = {NAN, NAN, NAN, NAN};
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
          threadIdx = {t, 0, 0};
          current = &at[t];
          const unsigned before = running;
          swapcontext(&turns, current);
          ended[t] = running < before;
        }
    }
}

template <int... TILE>
static void one(int threads, bool stays, int x, int y, int m, int n, int depth, int rows, int tiles, const float* a,
                const float* b, float* c) {
  launch(x, y, threads, [=] {
    if (stays)
      winograd_stay<TILE...>(m, n, depth, rows, tiles, a, b, c);
    else
      winograd_products<TILE...>(m, n, depth, rows, a, b, c);
  });
}

extern "C" void products(int which, bool stays, int x, int y, int m, int n, int depth, int rows, int tiles, const float* a,
                         const float* b, float* c) {
  if (which == 0) one<64, 128, 16, 8, 8, 3, 3>(128, stays, x, y, m, n, depth, rows, tiles, a, b, c);
  if (which == 1) one<64, 64, 16, 8, 4, 4, 4>(128, stays, x, y, m, n, depth, rows, tiles, a, b, c);
  if (which == 2) one<32, 32, 16, 4, 4, 4, 8>(64, stays, x, y, m, n, depth, rows, tiles, a, b, c);
}
