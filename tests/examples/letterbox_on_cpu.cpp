// Kernels of examples/images/preprocess on a CPU: each thread of a block runs up to its barrier, then each runs again and goes
// past it (a thread does the same twice). KERNEL: the file; NAME: its function; SCALE: the struct that it takes.
//
//     program batch images height width out
//
// Reads the bytes, the table and the scale (in this order) from `batch`, as the launcher makes them; writes the output.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__
#define __shared__ static

using std::max;
using std::min;
struct Three {
  unsigned x, y, z;
};
struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
static Three threadIdx, blockIdx, gridDim;
struct Barrier {};
static bool past;
static void __syncthreads() {
  if (!past) throw Barrier();
}

// What a kernel may touch: it reads whole words inside `bytes`.
static const unsigned char *bytes, *bytes_end;
static unsigned __ldg(const unsigned* at) {
  const auto* b = reinterpret_cast<const unsigned char*>(at);
  if (b < bytes || b + 4 > bytes_end || (size_t)b % 4) exit(3);
  return *at;
}
// L2 is asked for whole 16 bytes of them.
static void ask(const unsigned char* from, unsigned many) {
  if (from < bytes || from + many > bytes_end) exit(3);
  if ((size_t)from % 16 || many % 16 || !many) exit(6);
}
static unsigned __float_as_uint(float x) {
  unsigned u;
  memcpy(&u, &x, 4);
  return u;
}
static float __uint_as_float(unsigned u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}
static unsigned __float2uint_rn(float x) { return (unsigned)llrintf(x); }
static unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return (unsigned)(((uint64_t)high << 32 | low) >> (by & 31));
}
static unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
  const uint64_t all = (uint64_t)b << 32 | a;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i)
    out |= (unsigned)(all >> 8 * (s >> 4 * i & 7) & 255) << 8 * i;
  return out;
}
static unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
  return c + (a & 0xffff) * (b & 255) + (a >> 16) * (b >> 8 & 255);
}
static unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) {
  return __dp2a_lo(a, b >> 16, c);
}
struct __nv_bfloat16 {
  uint16_t bits;
};
static __nv_bfloat16 __float2bfloat16_rn(float x) {
  const unsigned u = __float_as_uint(x);
  return {(uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}

#include KERNEL

int main(int, char** words) {
  const int images = atoi(words[2]), height = atoi(words[3]);
  const int width = atoi(words[4]);
  FILE* in = fopen(words[1], "rb");
  fseek(in, 0, SEEK_END);
  const long all = ftell(in);
  rewind(in);
  std::vector<Image> table(images);
  SCALE scale;
  const long many = all - images * sizeof(Image) - sizeof scale;
  std::vector<unsigned> pixels((many + 3) / 4);
  if (fread(pixels.data(), 1, many, in) != (size_t)many) return 4;
  if (fread(table.data(), sizeof(Image), images, in) != (size_t)images)
    return 4;
  if (fread(&scale, sizeof scale, 1, in) != 1) return 4;
  bytes = (const unsigned char*)pixels.data(), bytes_end = bytes + many;
  const long long size = 3LL * images * height * width;
  std::vector<unsigned> out(size / 2 + 64, 0xffffffffu);
  auto* const to = (__nv_bfloat16*)out.data();
  const unsigned across = (width + TILE_WIDE - 1) / TILE_WIDE;
  const unsigned down = (height + TILE_HIGH - 1) / TILE_HIGH;
  const unsigned each = images;
  gridDim = {across, TURNED ? each : down, TURNED ? down : each};
  for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
        for (const bool turn : {false, true})
          for (threadIdx.y = 0; threadIdx.y < DOWN; ++threadIdx.y)
            for (threadIdx.x = 0; threadIdx.x < ACROSS; ++threadIdx.x) {
              past = turn;
              try {
                NAME(bytes, table.data(), scale, height, width, to);
              } catch (Barrier) {
              }
            }
  for (size_t i = size; i < 2 * out.size(); ++i)
    if (((uint16_t*)out.data())[i] != 0xffff) return 5;
  FILE* result = fopen(words[5], "wb");
  fwrite(out.data(), 2, size, result);
  return fclose(result);
}
