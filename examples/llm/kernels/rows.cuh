// What the kernels for rows of numbers share.
//
//   Vector, to_float, store          N elements in one load or store
//   row_of_thread, first_column      which row and columns a thread has
//   load_share                       loads a thread's share of a row
//   keep_packed                      keeps bf16 packed in registers
//   over_row                         reduces over the threads of a row
//   Sum, Largest                     what over_row reduces by
#pragma once
#include <cuda_bf16.h>

// N elements of type T that one instruction loads or stores: up to 16 bytes.
template <typename T, int N>
struct alignas(N * sizeof(T)) Vector {
  T at[N];
};

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

// Rounds N numbers to elements of type T, and stores them at once.
template <typename T, int N>
__device__ __forceinline__ void store(T* to, const float (&x)[N]) {
  Vector<T, N> v;
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int i = 0; i < N; ++i) v.at[i] = x[i];
  } else if constexpr (N == 1) {
    v.at[0] = __float2bfloat16_rn(x[0]);
  } else {
    // One instruction rounds two numbers.
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(x[i], x[i + 1]);
      v.at[i] = pair.x, v.at[i + 1] = pair.y;
    }
  }
  *reinterpret_cast<Vector<T, N>*>(to) = v;
}

// LANES neighboring threads share a row: up to 32 of them are part of a warp,
// more are a block.
// --8<-- [start:share]
template <int LANES>
__device__ __forceinline__ long long row_of_thread() {
  return ((long long)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
}

// A thread's first column. Its next vectors lie LANES * VEC elements apart, so
// that the vectors of neighboring threads lie side by side.
template <int VEC, int LANES>
__device__ __forceinline__ int first_column() {
  return threadIdx.x % LANES * VEC;
}

// Loads a thread's share of a row: PER vectors, all requested before the first
// is needed. from: the thread's first column. left: columns from there to the
// end of the row; zeros stand for what lies behind.
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

// Makes the compiler forget what it knows of v. Otherwise it would keep the
// floats that it has made of bf16 for their next use, in twice the registers;
// to make them again costs one instruction each.
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

// Reduces the values of all threads of a row by `op`, a Sum or a Largest,
// always in the same order; every thread gets the result. slots: LANES / 32
// words of shared memory that no other reduction of this kernel uses, so that
// one barrier is enough. Every thread of the block has to call this.
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
    // Every warp does the rest on its own.
    value = slots[threadIdx.x % WARPS];
#pragma unroll
    for (int away = WARPS / 2; away > 0; away /= 2)
      value = op(value, __shfl_xor_sync(~0u, value, away));
  }
  return value;
}
// --8<-- [end:reduce]
