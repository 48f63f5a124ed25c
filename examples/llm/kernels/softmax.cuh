// What the kernels of softmax.cu and softmax_cluster.cu share: which columns a
// row sees, powers, and what a thread does with its part of a row.
#pragma once
#include "rows.cuh"

// A row r sees its first lengths[r] columns, where lengths isn't null. queries
// > 0: rows are the queries of causal attention, that many to a matrix, and the
// last one sees every column, the one before all but the last, ...
// --8<-- [start:seen]
__device__ __forceinline__ int columns_seen(long long row, int width,
                                            int queries, const int* lengths) {
  int seen = width;
  if (queries > 0)  // rows fit into 32 bits, which divide faster
    seen = width - (queries - 1 - (int)((unsigned)row % (unsigned)queries));
  if (lengths) seen = min(seen, lengths[row]);
  return max(seen, 0);
}
// --8<-- [end:seen]

// --8<-- [start:power]
// Powers of 2 instead of e: one instruction, which gives 0 for results below
// 2^-126. Nothing is subtracted where all is -inf: -inf - -inf would be NaN.
__device__ __forceinline__ float power(float x, float largest, float log2_e) {
  x = (x - (largest == -INFINITY ? 0.0f : largest)) * log2_e;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(x));
  return x;
}
constexpr float LOG2_E = 1.4426950408889634f;

// Of a sum of 1 at least, as that of the largest number is 1; or of 0, which
// gives zeros. (NaN == 0 is false, so that NaN stays.)
__device__ __forceinline__ float inverse(float sum) {
  return sum == 0.0f ? 0.0f : __fdividef(1.0f, sum);
}
// --8<-- [end:power]

// A thread's part of a row, as `load_share` brings it, and what it is for:
// replaced by -inf where the row sees nothing, ...
// --8<-- [start:part]
template <int LANES, typename T, int VEC, int PER>
__device__ __forceinline__ void hide(Vector<T, VEC> (&v)[PER], int seen) {
#pragma unroll
  for (int k = 0; k < PER; ++k)
    if (k * LANES * VEC + VEC > seen)  // seldom: the vectors at the row's end
#pragma unroll
      for (int i = 0; i < VEC; ++i)
        if (k * LANES * VEC + i >= seen) v[k].at[i] = -INFINITY;
}

// ... its largest number, ...
template <typename T, int VEC, int PER>
__device__ __forceinline__ float largest_of(const Vector<T, VEC> (&v)[PER]) {
  float largest = -INFINITY;
#pragma unroll
  for (int k = 0; k < PER; ++k)
#pragma unroll
    for (int i = 0; i < VEC; ++i)
      largest = fmaxf(largest, to_float(v[k].at[i]));
  return largest;
}

// ... the sum of its powers, ...
template <typename T, int VEC, int PER>
__device__ __forceinline__ float sum_of(const Vector<T, VEC> (&v)[PER],
                                        float largest, float log2_e) {
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < PER; ++k)
#pragma unroll
    for (int i = 0; i < VEC; ++i)
      sum += power(to_float(v[k].at[i]), largest, log2_e);
  return sum;
}

// ... and its shares. out: where the first of them goes. left: columns from
// there to the end of the row.
template <int LANES, typename T, typename U, int VEC, int PER>
__device__ __forceinline__ void store_shares(U* out, int left,
                                             const Vector<T, VEC> (&v)[PER],
                                             float largest, float log2_e,
                                             float share) {
#pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int c = k * LANES * VEC;
    float y[VEC];
#pragma unroll
    for (int i = 0; i < VEC; ++i)
      y[i] = power(to_float(v[k].at[i]), largest, log2_e) * share;
    if (c < left) store(out + c, y);
  }
}
// --8<-- [end:part]
