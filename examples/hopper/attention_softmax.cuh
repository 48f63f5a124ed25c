// What attention on Hopper does with scores and results in registers.
//
//   pack     numbers rounded to bf16, two in a word
//   mask     hides scores of keys that a query does not see
//   Softmax  scores to weights, and results to memory
//
// Of the 16 rows of its warp a lane holds parts of two: x[4 * n + e] is of row
// lane / 4 + e / 2 * 8 and of column 8 * n + lane % 4 * 2 + e % 2.
#pragma once
#include <cuda_bf16.h>

#include "ptx/special.cuh"

// COUNT numbers rounded to bf16, two in each word.
template <int COUNT>
__device__ __forceinline__ void pack(const float (&x)[COUNT],
                                     unsigned (&words)[COUNT / 2]) {
#pragma unroll
  for (int i = 0; i < COUNT / 2; ++i) words[i] = pack(x[2 * i], x[2 * i + 1]);
}

// --8<-- [start:mask]
// Scores become -inf where the key's number is k_len or more, or, if CAUSAL,
// where the key comes after the query. key: number of the key of the first
// score; at: position of the query of the first row. COUNT: scores of a lane.
template <bool CAUSAL, int COUNT>
__device__ __forceinline__ void mask(float (&s)[COUNT], int key, int k_len,
                                     int at) {
  const int end[2] = {(CAUSAL ? min(k_len, at + 1) : k_len) - key,
                      (CAUSAL ? min(k_len, at + 9) : k_len) - key};
#pragma unroll
  for (int i = 0; i < COUNT; ++i)
    if (i / 4 * 8 + i % 2 >= end[i / 2 % 2]) s[i] = -INFINITY;
}
// --8<-- [end:mask]

// --8<-- [start:softmax]
// The exponentials of a row of scores are 2^(s * power - base). The base need
// not be the row's maximum: if it is lower, exponentials are above 1, which
// neither bf16 nor the sums mind. So the base is the maximum of the row's first
// scores, and stays until a sum shows that it is far too low. Only then maxima
// are looked for, and only then results need a factor. BN: keys in a step.
template <int BN>
struct Softmax {
  float base[2], factor[2], sum[2];  // of two rows; sum: this lane's part

  __device__ __forceinline__ void begin() {
    base[0] = base[1] = -1e38f;  // not -inf: -inf minus itself is NaN
    sum[0] = sum[1] = 0;
  }

  // Bases that are more than 8 below the maximum become the maximum. True if a
  // base of this warp has changed: results then need the factors.
  __device__ __forceinline__ bool raise(const float (&s)[BN / 2], float power) {
    float most[2][2] = {{s[0], s[1]}, {s[2], s[3]}};
#pragma unroll
    for (int i = 4; i < BN / 2; ++i)
      most[i / 2 % 2][i % 2] = fmaxf(most[i / 2 % 2][i % 2], s[i]);
    const float x[2] = {fmaxf(most[0][0], most[0][1]) * power,
                        fmaxf(most[1][0], most[1][1]) * power};
    if (!__any_sync(~0u, x[0] - base[0] > 8.0f || x[1] - base[1] > 8.0f))
      return false;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float y = fmaxf(x[r], __shfl_xor_sync(~0u, x[r], 1));
      y = fmaxf(y, __shfl_xor_sync(~0u, y, 2));
      const bool rises = y - base[r] > 8.0f;
      factor[r] = rises ? power_of_two(base[r] - y) : 1.0f;
      if (rises) base[r] = y;
      sum[r] *= factor[r];
    }
    return true;
  }

  // Scores become weights: exponentials, in pairs, with bases as they are.
  // After the first exponentials this calls `ready`, which returns when `p` may
  // be written. False if a base of this warp was too low; then the sums are as
  // before, and the weights are of no use. With `anyway` the result is always
  // true.
  template <class Ready>
  __device__ __forceinline__ bool weights(const float (&s)[BN / 2],
                                          unsigned (&p)[BN / 4], float power,
                                          const Ready& ready,
                                          bool anyway = false) {
    constexpr int COUNT = BN / 2, FIRST = 16;  // registers that are free
    float e[COUNT], total[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < FIRST; ++i)
      e[i] = power_of_two(fmaf(s[i], power, -base[i / 2 % 2]));
    ready();
#pragma unroll
    for (int i = FIRST; i < COUNT; ++i)
      e[i] = power_of_two(fmaf(s[i], power, -base[i / 2 % 2]));
#pragma unroll
    for (int i = 0; i < COUNT; ++i) total[i / 2 % 2] += e[i];
    pack(e, p);
    // If bases are at most 8 too low, sums of BN / 4 weights are below this.
    static_assert(BN / 4 <= 64, "sums");
    const bool fine = total[0] <= 20000.0f && total[1] <= 20000.0f;
    if (!anyway && __any_sync(~0u, !fine)) return false;
    sum[0] += total[0], sum[1] += total[1];
    return true;
  }

  // Multiply results by the factors of their rows.
  template <int COUNT>
  __device__ __forceinline__ void scale(float (&o)[COUNT]) const {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) o[i] *= factor[i / 2 % 2];
  }
  // --8<-- [end:softmax]

  // --8<-- [start:store]
  // Store results, divided by their sums, and log-sum-exps, unless lse is null.
  // row: the first of this lane's two. COUNT: results of a lane, half as many
  // as elements of a head. The other arguments are those of the kernel.
  template <int COUNT>
  __device__ __forceinline__ void store(const float (&o)[COUNT], int row,
                                        int q_len, int sequence,
                                        __nv_bfloat16* out, int out_stride,
                                        int heads, int head, float* lse) const {
    // So addresses are computed here, not in every step of a loop around this.
    asm volatile("" : "+r"(row), "+r"(head));
    const int lane = threadIdx.x % 4;
    const bool odd = lane & 1, high = lane & 2;
#pragma unroll
    for (int r = 0; r < 2; ++r, row += 8) {
      float total = sum[r];
      total += __shfl_xor_sync(~0u, total, 1);
      total += __shfl_xor_sync(~0u, total, 2);
      const float inverse = total == 0.0f ? 0.0f : __fdividef(1.0f, total);
      const long long at = (long long)sequence * q_len + row;
      if (lse && lane == 0 && row < q_len)
        lse[at * heads + head] =
            total == 0.0f ? -INFINITY : (base[r] + log2f(total)) * 0.693147181f;
#pragma unroll
      for (int n = 0; n < COUNT / 4; n += 4) {
        // Word i of lane t begins in column 8 * (n + i) + 2 * t. Four lanes
        // exchange words, so that each has 16 bytes that lie side by side.
        unsigned w[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          w[i] = pack(o[(n + i) * 4 + r * 2] * inverse,
                      o[(n + i) * 4 + r * 2 + 1] * inverse);
        swap(w[0], w[1], odd, 1), swap(w[2], w[3], odd, 1);
        swap(w[0], w[2], high, 2), swap(w[1], w[3], high, 2);
        store_if(row < q_len,
                 out + at * out_stride + head * (COUNT * 2) + (n + lane) * 8,
                 w);
      }
    }
  }

  // Stores 16 bytes if `so`, in one instruction and without a branch.
  static __device__ __forceinline__ void store_if(bool so, void* to,
                                                  const unsigned (&w)[4]) {
    asm volatile(
        "{ .reg .pred p;\nsetp.ne.b32 p, %0, 0;\n"
        "@p st.global.v4.b32 [%1], {%2, %3, %4, %5}; }" ::"r"((int)so),
        "l"(to), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
        : "memory");
  }

  // The lower of two lanes that are `distance` apart gives its second word for
  // the first word of the upper lane.
  static __device__ __forceinline__ void swap(unsigned& first, unsigned& second,
                                              bool upper, int distance) {
    const unsigned got = __shfl_xor_sync(~0u, upper ? first : second, distance);
    if (upper)
      first = got;
    else
      second = got;
  }
  // --8<-- [end:store]
};
