// fill.cu of examples/primitives/random on a CPU: its threads share nothing, so
// they run one after the other. KERNELS: a header with the kernels. Numbers:
// kind, counters of a thread (0: fill_one), n, seed, stream. Output: n words
// and 8 marks behind them.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __restrict__

struct Three {
  unsigned x, y, z;
};
struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
struct float2 {
  float x, y;
};
struct float4 {
  float x, y, z, w;
};
static Three threadIdx, blockIdx, blockDim, gridDim;
static unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned long long)a * b >> 32;
}
static float __uint2float_rz(unsigned word) {
  for (unsigned cut = 0; cut < 9; ++cut)
    if (word >> cut < 1u << 24) return (float)(word >> cut << cut);
  abort();
}
static void sincospif(float x, float* sine, float* cosine) {
  const double turned = fabs((double)x);  // exact where the cosine is near 0
  *cosine = (float)sin(M_PI * (0.5 - turned));
  *sine = (float)copysign(sin(M_PI * fmin(turned, 1 - turned)), x);
}
#define __sincosf sine_and_cosine  // the C library has one of its own
static void __sincosf(float x, float* sine, float* cosine) {
  *sine = sinf(x), *cosine = cosf(x);
}

#include KERNELS

template <class Body>
static void launch(long long grid, unsigned threads, Body body) {
  blockDim = {threads, 1, 1}, gridDim = {(unsigned)grid, 1, 1};
  for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) body();
}

template <int KIND>
static void filled(int each, unsigned* out, long long n,
                   unsigned long long seed, unsigned long long stream) {
  const long long per = 4 * (each ? each : 1) * 64;
  auto with = [&](auto kernel, long long grid) {
    launch(grid, 64, [&] { kernel(out, n, seed, stream); });
  };
  if (each == 0) with(fill_one<KIND>, (n + 63) / 64);
  if (each == 1) with(fill<KIND, 1, 64>, (n + per - 1) / per);
  if (each == 4) with(fill<KIND, 4, 64>, (n + per - 1) / per);
}

int main(int, char** words) {
  const int kind = atoi(words[1]), each = atoi(words[2]);
  const long long n = atoll(words[3]);
  const unsigned long long seed = strtoull(words[4], nullptr, 10);
  const unsigned long long stream = strtoull(words[5], nullptr, 10);
  std::vector<uint4> room(n / 4 + 4);
  unsigned* const out = &room[0].x;
  for (long long k = 0; k < n + 8; ++k) out[k] = 0xABCDEF01;
  if (kind == 0) filled<0>(each, out, n, seed, stream);
  if (kind == 1) filled<1>(each, out, n, seed, stream);
  if (kind == 2) filled<2>(each, out, n, seed, stream);
  if (kind == 3) filled<3>(each, out, n, seed, stream);
  fwrite(out, 4, n + 8, stdout);
}
