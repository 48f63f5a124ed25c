// Kernels of examples/images on a CPU, one thread after the other: they have no barriers. KERNELS: a header with the kernels.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

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
struct uint4 {
  unsigned x, y, z, w;
};
static Three threadIdx, blockIdx, blockDim, gridDim;

static unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t both = (uint64_t)b << 32 | a;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i)
    out |= (unsigned)(both >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
  return out;
}
static unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return (unsigned)(((uint64_t)high << 32 | low) >> (by & 31));
}
static int __float2int_rn(float x) { return (int)std::nearbyintf(x); }
static float __fmul_rn(float a, float b) { return a * b; }
static float __uint_as_float(unsigned x) {
  float y;
  std::memcpy(&y, &x, 4);
  return y;
}
static unsigned __float_as_uint(float x) {
  unsigned y;
  std::memcpy(&y, &x, 4);
  return y;
}

#include KERNELS

template <class Body>
static void launch(unsigned across, unsigned down, unsigned x, unsigned y, Body body) {
  gridDim = {across, down, 1}, blockDim = {x, y, 1};
  for (blockIdx.y = 0; blockIdx.y < down; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < across; ++blockIdx.x)
      for (threadIdx.y = 0; threadIdx.y < y; ++threadIdx.y)
        for (threadIdx.x = 0; threadIdx.x < x; ++threadIdx.x) body();
}

// One launch on a grid of `across` x `down` blocks of x by y threads. CALL: the kernel with its arguments, of which these are known.
extern "C" void run(void* out, const void* image, unsigned across, unsigned down, unsigned x, unsigned y, const int* of) {
  launch(across, down, x, y, [&] { CALL; });
}
