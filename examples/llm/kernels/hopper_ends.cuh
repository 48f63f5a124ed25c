// What linear_hopper.cu does with the sums of a product: its end.
//
//   for_pairs  visits the results of a thread in a row
//   over_quad  the sum over the lanes that share a row
//   RowScale   the second half of a norm: a factor for each row
//   Store      y = the product
//   Add        y += the product, and the first half of the norm that comes next
//   Gates      out = silu(gate) up
//
// A thread has two rows; an end works on one of them at a time. Of every eight
// columns from `left` on a thread has two neighbors: sum[4 j + 2 half] is at
// column left + 8 j + threadIdx.x % 4 * 2, where half is 0 for its first row
// and 1 for its second. SIZE: sums of a thread, both rows together.
//
// An end loads what it needs beside the sums by `load`. That comes from far
// away, so `load` is called before the product if the tile is small, or if the
// loads are INDEPENDENT and do not wait for each other. Otherwise `load` is
// called behind the product, while another consumer multiplies. Then `finish`
// stores the results. Rows from n on do not exist. outputs is even, except for
// Store.
#pragma once
#include "rows.cuh"

// Calls what(j, column) for each pair that this thread has in a row.
template <int SIZE, class What>
__device__ __forceinline__ void for_pairs(int left, int outputs, What&& what) {
#pragma unroll
  for (int j = 0; j < SIZE / 4; ++j) {
    const int column = left + j * 8 + threadIdx.x % 4 * 2;
    if (column < outputs) what(j, column);
  }
}

// The sum over the four lanes that share a row.
__device__ __forceinline__ float over_quad(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// --8<-- [start:norm]
// RMSNorm in two halves. y = W (x w / rms) is W (x w) / rms, where rms is one
// number for each row. So the kernel that computes x also stores x w in bf16
// and, for each of its tiles, the sum of the squares in a row; the kernel that
// multiplies x w divides the results. No launch stands between the two.
struct RowScale {
  const float* squares;  // n x parts; null makes the factor 1
  int parts;
  float share, eps;  // share: 1 / columns of x

  __device__ __forceinline__ float of(int row, int n) const {
    if (!squares) return 1.0f;
    float sum = 0.0f;
    if (row < n)
      for (int part = threadIdx.x % 4; part < parts; part += 4)
        sum += squares[(size_t)row * parts + part];
    return rsqrtf(over_quad(sum) * share + eps);
  }
};
// --8<-- [end:norm]

// y = the product in fp32: logits.
struct Store {
  static constexpr bool INDEPENDENT = true;
  float* y;

  template <int SIZE>
  struct Kept {};
  template <int SIZE>
  __device__ __forceinline__ void load(Kept<SIZE>&, int, int, int, int) const {}
  template <int SIZE>
  __device__ __forceinline__ void finish(const float (&sum)[SIZE],
                                         const Kept<SIZE>&, int half, int row,
                                         int left, int n, int outputs) const {
    if (row >= n) return;
    const bool both = outputs % 2 == 0;  // then every row begins at a pair
    for_pairs<SIZE>(left, outputs, [&](int j, int column) {
      float* const to = y + (size_t)row * outputs + column;
      const float* const two = &sum[4 * j + 2 * half];
      if (both) {
        store(to, {two[0], two[1]});
      } else {
        to[0] = two[0];
        if (column + 1 < outputs) to[1] = two[1];
      }
    });
  }
};

// --8<-- [start:add]
// y += the product in fp32: the residual stream. With a weight, that of the
// norm that comes next, also its first half: h = y weight, and the sums of
// squares.
struct Add {
  static constexpr bool INDEPENDENT = true;
  float* y;
  const float* weight;
  __nv_bfloat16* h;
  float* squares;  // n x tiles of 2 SIZE columns

  template <int SIZE>
  struct Kept {
    float2 old[SIZE / 4];
  };
  template <int SIZE>
  __device__ __forceinline__ void load(Kept<SIZE>& kept, int row, int left,
                                       int n, int outputs) const {
    if (row >= n) return;
    for_pairs<SIZE>(left, outputs, [&](int j, int column) {
      kept.old[j] =
          *reinterpret_cast<const float2*>(y + (size_t)row * outputs + column);
    });
  }
  template <int SIZE>
  __device__ __forceinline__ void finish(const float (&sum)[SIZE],
                                         const Kept<SIZE>& kept, int half,
                                         int row, int left, int n,
                                         int outputs) const {
    float squared = 0.0f;
    if (row < n)
      for_pairs<SIZE>(left, outputs, [&](int j, int column) {
        const size_t at = (size_t)row * outputs + column;
        const float a = sum[4 * j + 2 * half] + kept.old[j].x,
                    b = sum[4 * j + 2 * half + 1] + kept.old[j].y;
        store(y + at, {a, b});
        if (!weight) return;
        const float2 w = *reinterpret_cast<const float2*>(weight + column);
        store(h + at, {a * w.x, b * w.y});
        squared += a * a + b * b;
      });
    if (!weight) return;
    const int tiles = (outputs + 2 * SIZE - 1) / (2 * SIZE);
    squared = over_quad(squared);
    if (threadIdx.x % 4 == 0 && row < n && left < outputs)
      squares[(size_t)row * tiles + left / (2 * SIZE)] = squared;
  }
};
// --8<-- [end:add]

// --8<-- [start:gates]
// out = silu(gate) up in bf16, n x outputs / 2. Of every 16 rows of W the first
// 8 belong to gates, the others to the ups of the same outputs; outputs is a
// multiple of 16. silu(x) = x / (1 + e^-x), where e^-x may be infinite.
struct Gates {
  static constexpr bool INDEPENDENT = false;
  __nv_bfloat16* out;
  RowScale scale;

  template <int SIZE>
  struct Kept {
    float by;
  };
  template <int SIZE>
  __device__ __forceinline__ void load(Kept<SIZE>& kept, int row, int, int n,
                                       int) const {
    kept.by = scale.of(row, n);
  }
  template <int SIZE>
  __device__ __forceinline__ void finish(const float (&sum)[SIZE],
                                         const Kept<SIZE>& kept, int half,
                                         int row, int left, int n,
                                         int outputs) const {
    const auto swiglu = [](float gate, float up) {
      return __fdividef(gate, 1.0f + expf(-gate)) * up;
    };
    if (row >= n) return;
    for_pairs<SIZE / 2>(left / 2, outputs / 2, [&](int j, int column) {
      const float* const gate = &sum[8 * j + 2 * half];
      const float* const up = gate + 4;
      store(out + (size_t)row * (outputs / 2) + column,
            {swiglu(gate[0] * kept.by, up[0] * kept.by),
             swiglu(gate[1] * kept.by, up[1] * kept.by)});
    });
  }
};
// --8<-- [end:gates]
