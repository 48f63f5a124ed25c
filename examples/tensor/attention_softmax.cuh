// What flash_hopper.cu does with scores and results in registers. A lane holds
// two rows of its warp's 16: x[4 * n + e] is of row lane / 4 + e / 2 * 8 and of
// column 8 * n + lane % 4 * 2 + e % 2.
#pragma once
#include <cuda_bf16.h>

// Two numbers rounded to bf16 in one word, the first in the lower half.
__device__ __forceinline__ unsigned pack(float first, float second) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
}

template <int COUNT>
__device__ __forceinline__ void pack(const float (&x)[COUNT],
                                     unsigned (&words)[COUNT / 2]) {
#pragma unroll
  for (int i = 0; i < COUNT / 2; ++i) words[i] = pack(x[2 * i], x[2 * i + 1]);
}

// 2^x with an error of about 1e-7 of the value, by the special function unit.
__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// --8<-- [start:mask]
// Scores of keys that there are not, or behind the query's position. key: of
// the first score; at: position of the first row.
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
// not be the row's maximum: one that is up to 8 less makes exponentials of up
// to 2^8, which neither bf16 nor sums mind. So results seldom need a factor.
template <int BN, int PARTS>
struct Softmax {
  float base[2], factor[2], sum[2];  // the sum: this lane's part

  __device__ __forceinline__ void begin() {
    base[0] = base[1] = -1e38f;  // not -inf, which minus itself is NaN
    sum[0] = sum[1] = 0;
  }

  // Scores become exponentials, in so many PARTS: the maxima of a part may run
  // under the exponentials of the part before. True if a base of this warp
  // rises: results then need the factors.
  __device__ __forceinline__ bool weights(float (&s)[BN / 2], float power) {
    constexpr int COUNT = BN / 2 / PARTS;
    static_assert(COUNT % 4 == 0, "whole groups of columns");
    bool rises = false;
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
      rises |= raise(s, part * COUNT, COUNT, power, rises);
      exponentials(s, part * COUNT, COUNT, power);
    }
    return rises;
  }

  // For scores from `first` on; those before are exponentials already. again:
  // there are factors of this step already.
  __device__ __forceinline__ bool raise(float (&s)[BN / 2], int first,
                                        int count, float power, bool again) {
    float most[2][2] = {{s[first], s[first + 1]}, {s[first + 2], s[first + 3]}};
#pragma unroll
    for (int i = first + 4; i < first + count; ++i)
      most[i / 2 % 2][i % 2] = fmaxf(most[i / 2 % 2][i % 2], s[i]);
    return lift(s, most, first, power, again);
  }

  __device__ __forceinline__ bool lift(float (&s)[BN / 2],
                                       const float (&most)[2][2], int first,
                                       float power, bool again) {
    const float x[2] = {fmaxf(most[0][0], most[0][1]) * power,
                        fmaxf(most[1][0], most[1][1]) * power};
    if (!__any_sync(~0u, x[0] - base[0] > 8.0f || x[1] - base[1] > 8.0f))
      return false;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float y = fmaxf(x[r], __shfl_xor_sync(~0u, x[r], 1));
      y = fmaxf(y, __shfl_xor_sync(~0u, y, 2));
      const bool rises = y - base[r] > 8.0f;
      const float f = rises ? power_of_two(base[r] - y) : 1.0f;
      if (rises) base[r] = y;
      sum[r] *= f;
      factor[r] = again ? factor[r] * f : f;
#pragma unroll
      for (int i = 0; i < first; ++i)
        if (i / 2 % 2 == r) s[i] *= f;
    }
    return true;
  }

  __device__ __forceinline__ void exponentials(float (&s)[BN / 2], int first,
                                               int count, float power) {
#pragma unroll
    for (int i = first; i < first + count; ++i) {
      s[i] = power_of_two(fmaf(s[i], power, -base[i / 2 % 2]));
      sum[i / 2 % 2] += s[i];
    }
  }

  __device__ __forceinline__ void powers(float (&s)[BN / 2], float power,
                                         int first = 0,
                                         int count = BN / 2) const {
#pragma unroll
    for (int i = first; i < min(first + count, BN / 2); ++i)
      s[i] = power_of_two(fmaf(s[i], power, -base[i / 2 % 2]));
  }

  // Sums and words of exponentials. True if a base was too low, as `vote` finds
  // for all warps that have to agree; then sums are as before.
  template <class Vote>
  __device__ __forceinline__ bool gather(const float (&e)[BN / 2],
                                         unsigned (&p)[BN / 4],
                                         const Vote& vote) {
    float total[2][4] = {};
#pragma unroll
    for (int i = 0; i < BN / 2; i += 2) {
      total[i / 2 % 2][i / 4 % 2 * 2] += e[i];
      total[i / 2 % 2][i / 4 % 2 * 2 + 1] += e[i + 1];
      p[i / 2] = pack(e[i], e[i + 1]);
    }
    const float of[2] = {
        (total[0][0] + total[0][1]) + (total[0][2] + total[0][3]),
        (total[1][0] + total[1][1]) + (total[1][2] + total[1][3])};
    if (vote(!(of[0] <= 20000.0f && of[1] <= 20000.0f))) return true;
    sum[0] += of[0], sum[1] += of[1];
    return false;
  }

  // Weights of scores with bases as they are, in `p`, after `ready` was called;
  // and their sums. These say whether a base was too low: then true, and
  // nothing but `p` has changed. So maxima are needed only if a base has to
  // rise.
  template <bool ORDERED, class Ready>
  __device__ __forceinline__ bool guess(const float (&s)[BN / 2],
                                        unsigned (&p)[BN / 4], float power,
                                        const Ready& ready) {
    constexpr int COUNT = BN / 2, FIRST = 16;
    float e[COUNT], total[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < FIRST; ++i)
      e[i] = power_of_two(fmaf(s[i], power, -base[i / 2 % 2]));
    ready();
#pragma unroll
    for (int i = FIRST; i < COUNT; ++i)
      e[i] = power_of_two(fmaf(s[i], power, -base[i / 2 % 2]));
    if (ORDERED) {  // a sum begins with a late one: so it waits for few
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        constexpr int GROUP = 8;  // pairs
#pragma unroll
        for (int g = 0; g < COUNT / 4; g += GROUP) {
          const int late = min(g + 2 * GROUP, COUNT / 4) - 1;
          if (g + GROUP < COUNT / 4) total[r] += e[late * 4 + r * 2 + 1];
#pragma unroll
          for (int n = g; n < g + GROUP && n < COUNT / 4; ++n) {
            total[r] += e[n * 4 + r * 2];
            if (g == 0 || n != min(g + GROUP, COUNT / 4) - 1)
              total[r] += e[n * 4 + r * 2 + 1];
          }
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < COUNT; ++i) total[i / 2 % 2] += e[i];
    }
#pragma unroll
    for (int i = 0; i < COUNT; i += 2) p[i / 2] = pack(e[i], e[i + 1]);
    if (__any_sync(~0u, !(total[0] <= 20000.0f && total[1] <= 20000.0f)))
      return true;
    sum[0] += total[0], sum[1] += total[1];
    return false;
  }

  // Exponentials are not moved to behind this line. A compiler that is free to
  // puts them behind a wait for products, which then run alone. But it has to
  // know the sums to know that there is no error here, and no sum is negative.
  __device__ __forceinline__ void settle() const {
    if (sum[0] < 0.0f || sum[1] < 0.0f) asm volatile("trap;" ::: "memory");
  }

  template <int COUNT>
  __device__ __forceinline__ void scale(float (&o)[COUNT]) const {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) o[i] *= factor[i / 2 % 2];
  }
  // --8<-- [end:softmax]

  // --8<-- [start:store]
  // Results, divided by their sums, and log-sum-exps. row: this lane's first.
  template <int COUNT>
  __device__ __forceinline__ void store(const float (&o)[COUNT], int row,
                                        int q_len, int sequence,
                                        __nv_bfloat16* out, int out_stride,
                                        int heads, int head, float* lse) const {
    // Addresses are worked out here, not in every step of a loop around this.
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
        // Word i of lane t is column 8 * (n + i) + 2 * t. Four lanes turn their
        // words, so that each has 16 bytes that are side by side.
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

  // 16 bytes in one instruction, and without a branch.
  static __device__ __forceinline__ void store_if(bool so, void* to,
                                                  const unsigned (&w)[4]) {
    asm volatile(
        "{ .reg .pred p;\nsetp.ne.b32 p, %0, 0;\n"
        "@p st.global.v4.b32 [%1], {%2, %3, %4, %5}; }" ::"r"((int)so),
        "l"(to), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
        : "memory");
  }

  // A lane gives its second word for its neighbor's first.
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
