// What goes into shared memory, for several.cu and window.cu.
//
//   put            a word, or a zero
//   weights_pitch  words from one place of a window to the next
//   copy_weights   by all threads of a block
#pragma once
#include <cuda_pipeline.h>

// *to = there ? *from : 0. ASYNC: the word goes its way by itself (cp.async,
// from sm_80 on) until the next wait of this thread.
template <bool ASYNC = false>
__device__ __forceinline__ void put(float* to, const float* from, bool there) {
#if __CUDA_ARCH__ >= 800
  if (ASYNC) return __pipeline_memcpy_async(to, from, 4, there ? 0 : 4);
#endif
  *to = there ? *from : 0.0f;
}

// 4 filters and 8 places meet in no bank.
__host__ __device__ constexpr int weights_pitch(int filters) {
  return filters % 32 == 0 ? filters + 4 : filters;
}

// The weights of a block's WARPS * F filters, `count` words of each, turned:
// those of one place lie together. Each warp copies those that it needs itself.
// from: the first word of the block's first filter, `depth` words before that
// of the next. Words from `there` on, and filters from `filters` on, are zeros.
// --8<-- [start:copy]
template <int WARPS, int F, bool ASYNC = false>
__device__ __forceinline__ void copy_weights(float* held, const float* from,
                                             int depth, int count, int there,
                                             int filters) {
  constexpr int PITCH = weights_pitch(WARPS * F);
#if ACROSS  // a lane for each filter: 32 places in memory for a load
  constexpr int FILTERS = WARPS * F;
  const int f = threadIdx.x % FILTERS;
#pragma unroll 1
  for (int k = threadIdx.x / FILTERS; k < count; k += WARPS * 32 / FILTERS)
    put<ASYNC>(held + k * PITCH + f, from + (long long)f * depth + k,
               f < filters && k < there);
#else
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // 4 filters at a time, and 8 words of each that lie side by side.
  constexpr int SIDE = F % 4 == 0 ? 4 : 1, ALONG = 32 / SIDE;
#pragma unroll
  for (int g = 0; g < F; g += SIDE) {
    const int f = warp * F + g + lane % SIDE;
    const float* at = from + (long long)f * depth + lane / SIDE;
    float* to = held + lane / SIDE * PITCH + f;
#pragma unroll 2
    for (int k = lane / SIDE; k < count;
         k += ALONG, at += ALONG, to += ALONG * PITCH)
      put<ASYNC>(to, at, f < filters && k < there);
  }
#endif
}
// --8<-- [end:copy]
