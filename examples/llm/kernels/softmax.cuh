// What the kernels of softmax.cu and softmax_cluster.cu share.
//
//   columns_seen                       which columns a row sees
//   power, inverse                     2^((x - largest) * log2_e) and 1 / sum
//   hide, largest_of, sum_of           steps on a thread's part of a row
//   store_shares                       the last step
#pragma once
#include "ptx/special.cuh"
#include "rows.cuh"

// The number of columns that a row sees. Where lengths is not null, row r sees
// its first lengths[r] columns. With queries > 0, rows are the queries of
// causal attention, `queries` rows to a matrix: the last one sees every column,
// the one before it all but the last column, and so on.
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
// A power of 2 takes one instruction, and is 0 for results below 2^-126. If all
// numbers are -inf nothing is subtracted: -inf - -inf would be NaN.
__device__ __forceinline__ float power(float x, float largest, float log2_e) {
  x = (x - (largest == -INFINITY ? 0.0f : largest)) * log2_e;
  return power_of_two(x);
}
constexpr float LOG2_E = 1.4426950408889634f;

// 1 / sum. A sum is at least 1, the power of the largest number; or it is 0,
// and the row becomes zeros. (NaN == 0 is false, so NaN stays.)
__device__ __forceinline__ float inverse(float sum) {
  return sum == 0.0f ? 0.0f : __fdividef(1.0f, sum);
}
// --8<-- [end:power]

// The steps on a thread's part of a row, as `load_share` of rows.cuh brings it.
// T, VEC, PER and LANES are those of softmax_fused. First: -inf replaces what
// the row does not see.
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

// Second: the largest number.
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

// Third: the sum of powers.
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

// Last: the shares of the sum, as U. out: where the first of them goes. left:
// columns from there to the end of the row. share: 1 / sum.
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
