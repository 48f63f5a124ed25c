// What the kernels for rows of numbers share: vectors of up to 16 bytes, and
// reductions over the threads of a row.
#pragma once
#include <cuda_bf16.h>

// N elements that one instruction loads or stores.
template <typename T, int N>
struct alignas(N * sizeof(T)) Vector {
  T at[N];
};

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

template <typename T, int N>
__device__ __forceinline__ void store(T* to, const float (&x)[N]) {
  Vector<T, N> v;
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int i = 0; i < N; ++i) v.at[i] = x[i];
  } else if constexpr (N == 1) {
    v.at[0] = __float2bfloat16_rn(x[0]);
  } else {
    // One instruction rounds two.
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(x[i], x[i + 1]);
      v.at[i] = pair.x, v.at[i + 1] = pair.y;
    }
  }
  *reinterpret_cast<Vector<T, N>*>(to) = v;
}

// LANES neighboring threads have a row: up to 32 of them are part of a warp,
// more are a block.
// --8<-- [start:share]
template <int LANES>
__device__ __forceinline__ long long row_of_thread() {
  return ((long long)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
}

// A thread's first column; its next vectors lie LANES * VEC elements apart, so
// that those of neighbors lie side by side.
template <int VEC, int LANES>
__device__ __forceinline__ int first_column() {
  return threadIdx.x % LANES * VEC;
}

// A thread's share of a row: PER loads, all issued before the first is needed.
// from: its first column. left: columns from there to the end of the row; zeros
// stand for what lies behind.
template <int LANES, typename T, int VEC, int PER>
__device__ __forceinline__ void load_share(Vector<T, VEC> (&v)[PER],
                                           const T* from, int left) {
#pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int c = k * LANES * VEC;
    v[k] = {};
    if (c < left) v[k] = *reinterpret_cast<const Vector<T, VEC>*>(from + c);
  }
}
// --8<-- [end:share]

// From here on the compiler knows nothing of what v holds. Otherwise it would
// keep the floats that it has made of bf16 for their next use, in twice the
// registers; to make them again costs one instruction each.
template <typename T, int VEC, int PER>
__device__ __forceinline__ void keep_packed(Vector<T, VEC> (&v)[PER]) {
  if constexpr (sizeof(T) == 2 && VEC > 1) {
#pragma unroll
    for (int k = 0; k < PER; ++k)
#pragma unroll
      for (int i = 0; i < VEC; i += 2)
        asm volatile("" : "+r"(reinterpret_cast<unsigned&>(v[k].at[i])));
  }
}

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// Of the values of all threads of a row, always in the same order; every one of
// them gets the result. slots: shared, LANES / 32 words that no other reduction
// of this kernel uses, so that one barrier is enough. Every thread of the block
// has to come here.
// --8<-- [start:reduce]
template <int LANES, typename Op>
__device__ __forceinline__ float over_row(float value, float* slots, Op op) {
#pragma unroll
  for (int away = LANES < 32 ? LANES / 2 : 16; away > 0; away /= 2)
    value = op(value, __shfl_xor_sync(~0u, value, away));
  if constexpr (LANES > 32) {
    constexpr int WARPS = LANES / 32;
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = value;
    __syncthreads();
    // Every warp does the rest for itself.
    value = slots[threadIdx.x % WARPS];
#pragma unroll
    for (int away = WARPS / 2; away > 0; away /= 2)
      value = op(value, __shfl_xor_sync(~0u, value, away));
  }
  return value;
}
// --8<-- [end:reduce]
