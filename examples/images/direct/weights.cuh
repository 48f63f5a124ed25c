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

// `count` words of each of FILTERS filters, turned: those of one place lie
// together. from: the first word of the first filter, `depth` words before that
// of the next. Words from `there` on, and filters from `filters` on, are zeros.
// --8<-- [start:copy]
template <int FILTERS, int THREADS, bool ASYNC = false>
__device__ __forceinline__ void copy_weights(float* held, const float* from,
                                             int depth, int count, int there,
                                             int filters) {
#if ACROSS  // a lane for each filter: 32 places in memory for a load
  const int f = threadIdx.x % FILTERS;
#pragma unroll 1
  for (int k = threadIdx.x / FILTERS; k < count; k += THREADS / FILTERS)
    put<ASYNC>(held + k * weights_pitch(FILTERS) + f,
               from + (long long)f * depth + k, f < filters && k < there);
#else
  // A warp has 4 filters, and 8 words of each that lie side by side.
  constexpr int SIDE = FILTERS % 4 == 0 ? 4 : 1, ALONG = 32 / SIDE;
  constexpr int GROUPS = FILTERS / SIDE;
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int i = threadIdx.x / 32; i < (count + ALONG - 1) / ALONG * GROUPS;
       i += THREADS / 32) {
    const int f = i % GROUPS * SIDE + lane % SIDE;
    const int k = i / GROUPS * ALONG + lane / SIDE;
    if (k < count)
      put<ASYNC>(held + k * weights_pitch(FILTERS) + f,
                 from + (long long)f * depth + k, f < filters && k < there);
  }
#endif
}
// --8<-- [end:copy]
