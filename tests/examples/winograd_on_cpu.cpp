// Kernels of examples/images/winograd/transforms.cu on a CPU: their threads need nothing of each other, so they come one after
// the other. A library for ctypes; KERNELS: a header with the kernels.
#include <algorithm>
#include <cstddef>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __restrict__

using std::min;
struct Three {
  unsigned x, y, z;
};
struct float2 {
  float x, y;
};
struct float4 {
  float x, y, z, w;
};
static float2 make_float2(float x, float y) { return {x, y}; }
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static float __fmul_rn(float a, float b) { return a * b; }
static Three threadIdx, blockIdx, gridDim;

#include KERNELS

template <class Body>
static void launch(int x, int y, Body body) {
  gridDim = {(unsigned)x, (unsigned)y, 1};
  for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
      for (threadIdx.x = 0; threadIdx.x < 128; ++threadIdx.x) body();
}

extern "C" {
void inputs(int m, const Shape* s, int down, int across, int pitch, int filters, int high, const float* images, float* v,
            const float* weights, float* u, int x, int y) {
  auto kernel = m == 2 ? winograd_inputs<2> : winograd_inputs<4>;
  launch(x, y, [=] { kernel(*s, down, across, pitch, filters, high, images, v, weights, u); });
}

void results(int m, int vec, const Shape* s, int down, int across, int pitch, const float* from, float* to, int x, int y) {
  auto kernel = m == 2    ? vec == 2 ? winograd_results<2, 2> : winograd_results<2, 1>
                : vec == 4 ? winograd_results<4, 4>
                : vec == 2 ? winograd_results<4, 2>
                           : winograd_results<4, 1>;
  launch(x, y, [=] { kernel(*s, down, across, pitch, from, to); });
}
}
