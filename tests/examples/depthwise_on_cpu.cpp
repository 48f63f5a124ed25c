// Kernels of examples/images/depthwise on a CPU, a thread after the other. They have one barrier at most: before it all threads
// of a block run once, then all run again, to the end. KERNELS: a header with them; LAUNCH: what `which` starts.
// Standard input: the numbers of `Given`, then images and weights; output: the results, with what lies around them.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__
#define __syncthreads() \
  if (filling) return

struct Three {
  unsigned x, y, z;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
static float2 make_float2(float x, float y) { return {x, y}; }
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static Three threadIdx, blockIdx, blockDim;
static bool filling;
alignas(16) static float4 shared[1 << 14];

struct __nv_bfloat16 {
  unsigned short bits;
};
struct __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
static float __uint_as_float(unsigned bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
static float __bfloat162float(__nv_bfloat16 x) { return __uint_as_float((unsigned)x.bits << 16); }
static __nv_bfloat16 __float2bfloat16(float x) {
  unsigned bits;
  memcpy(&bits, &x, 4);
  return {(unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
static __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16(x), __float2bfloat16(y)};
}
template <class T>
static T min(T a, T b) {
  return a < b ? a : b;
}

#include KERNELS

struct Given {
  int which, grid, block, around;  // bytes before and behind each array
  int bytes[3];
  Shape shape;
  int more[6];
};

// An array whose surroundings hold NaNs.
static std::vector<uint4> made(int bytes, int around) {
  std::vector<uint4> all((bytes + 2 * around + 15) / 16);
  memset(all.data(), 0xff, all.size() * 16);
  return all;
}

int main() {
  Given given;
  if (fread(&given, sizeof given, 1, stdin) != 1) return 2;
  std::vector<uint4> arrays[3];
  char* at[3];
  for (int i = 0; i < 3; ++i) {
    arrays[i] = made(given.bytes[i], given.around);
    at[i] = reinterpret_cast<char*>(arrays[i].data()) + given.around;
    if (i < 2 && fread(at[i], 1, given.bytes[i], stdin) != (size_t)given.bytes[i]) return 2;
  }
  blockDim = {(unsigned)given.block, 1, 1};
  for (blockIdx.x = 0; blockIdx.x < (unsigned)given.grid; ++blockIdx.x)
    for (int pass = 1; pass >= 0; --pass) {
      filling = pass;
      for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) {
        const Shape& s = given.shape;
        const int* const more = given.more;
        switch (given.which) { LAUNCH }
      }
    }
  fwrite(arrays[2].data(), 1, given.bytes[2] + 2 * given.around, stdout);
}
