// What becomes of sums in the final kernel: alpha, beta, and stores that work
// at any edge and for any alignment.
//
//   as_float              an element as fp32
//   store_one, store_two  one or two numbers, rounded to the type of C
//   for_pairs             goes through a thread's sums by pairs of columns
//   scale                 alpha and beta
//   store_sums            stores sums from registers
#pragma once
#include "ptx/half.cuh"

__device__ __forceinline__ float as_float(float x) { return x; }
__device__ __forceinline__ float as_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ __forceinline__ float as_float(__half x) { return __half2float(x); }

__device__ __forceinline__ void store_one(float* to, float x) { *to = x; }
__device__ __forceinline__ void store_one(__nv_bfloat16* to, float x) {
  *to = __float2bfloat16_rn(x);
}

__device__ __forceinline__ void store_two(float* to, float x, float y) {
  *reinterpret_cast<float2*>(to) = make_float2(x, y);
}
__device__ __forceinline__ void store_two(__nv_bfloat16* to, float x, float y) {
  *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(x, y);
}

// --8<-- [start:each]
// Calls what(row, column, i) for every pair of sums of this thread whose first
// one is inside of C: sum[i] is at `row` and `column`, sum[i + 1] in the next
// column. SIZE: sums of a thread, half as many as columns; top, left: where the
// warpgroup's 64 rows of sums begin in C, which is m x n.
template <int SIZE, class What>
__device__ __forceinline__ void for_pairs(int top, int left, int m, int n,
                                          What&& what) {
  const int t = threadIdx.x % 128, row = top + t / 32 * 16 + t % 32 / 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (row + half * 8 >= m) continue;
#pragma unroll
    for (int j = 0; j < SIZE / 4; ++j) {
      const int column = left + j * 8 + t % 4 * 2;
      if (column < n) what(row + half * 8, column, 4 * j + 2 * half);
    }
  }
}
// --8<-- [end:each]

// --8<-- [start:scale]
// sum = alpha sum + beta C. For beta = 0 no thread reads C.
template <int SIZE, class Out>
__device__ __forceinline__ void scale(float (&sum)[SIZE], const Out* C, int ldc,
                                      int top, int left, int m, int n,
                                      float alpha, float beta) {
  if (alpha != 1.0f) {
#pragma unroll
    for (int i = 0; i < SIZE; ++i) sum[i] *= alpha;
  }
  if (beta != 0.0f)
    for_pairs<SIZE>(top, left, m, n, [&](int row, int column, int i) {
      const Out* const old = C + (size_t)row * ldc + column;
      sum[i] += beta * as_float(old[0]);
      if (column + 1 < n) sum[i + 1] += beta * as_float(old[1]);
    });
}
// --8<-- [end:scale]

// --8<-- [start:store]
// Store sums from registers, rounded to Out: two columns at a time if rows of C
// begin at multiples of two elements.
template <int SIZE, class Out>
__device__ __forceinline__ void store_sums(const float (&sum)[SIZE], Out* C,
                                           int ldc, int top, int left, int m,
                                           int n) {
  const bool pairs = ldc % 2 == 0 && (size_t)C % (2 * sizeof(Out)) == 0;
  for_pairs<SIZE>(top, left, m, n, [&](int row, int column, int i) {
    Out* const to = C + (size_t)row * ldc + column;
    if (pairs && column + 1 < n) {
      store_two(to, sum[i], sum[i + 1]);
    } else {
      store_one(to, sum[i]);
      if (column + 1 < n) store_one(to + 1, sum[i + 1]);
    }
  });
}
// --8<-- [end:store]
