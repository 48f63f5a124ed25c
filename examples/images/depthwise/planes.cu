// Depthwise convolution in fp32, NCHW: each channel has a filter of its own, so
// a plane of the image gives one plane of the results, and memory is what
// counts.
//
//   row_words   one row of the image, as far as a thread needs it
//   planes      the kernel: a thread computes P x W results
//
// Arrays as in images/direct/naive.cu, with one channel and one filter in each
// group.
//
// requires: sm_75
// @instance planes<3,1,4,7,2,4>
// @instance planes<3,1,2,7,2,4>
// @instance planes<3,1,1,7,2,4>
// @instance planes<3,2,4,7,2,3>
// @instance planes<3,2,2,7,2,3>
// @instance planes<3,2,1,7,2,3>
// @instance planes<5,1,4,7,1,3>
// @instance planes<5,1,2,7,1,3>
// @instance planes<5,1,1,7,1,3>
// @instance planes<5,2,2,7,1,3>
// @instance planes<5,2,1,7,1,3>
// @instance planes<7,1,4,7,1,3>
// @instance planes<7,1,2,7,1,3>
// @instance planes<7,1,1,7,1,3>
// @instance planes<7,2,2,7,1,3>
// @instance planes<7,2,1,7,1,3>
#include "images/shape.cuh"

// --8<-- [start:words]
// What a thread reads of a row for W results beside each other, in a window of
// K and at a stride of S: NEED words. They begin LEFT words to the left of the
// first result's own place, and SKIP words into the first of COUNT aligned
// vectors of W words.
template <int K, int S, int W>
struct Words {
  static constexpr int NEED = (W - 1) * S + K;
  static constexpr int LEFT = K / 2;
  static constexpr int SKIP = (LEFT + W - 1) / W * W - LEFT;
  static constexpr int COUNT = (SKIP + NEED + W - 1) / W;
};

// Words FIRST to LAST of a vector of W, of which no others are wanted.
template <int W, int FIRST, int LAST>
__device__ __forceinline__ void load(const float* at, float* to) {
  if constexpr (FIRST == LAST) {
    to[FIRST] = at[FIRST];
  } else if constexpr (W == 2 || LAST < 2 || FIRST >= 2) {
    constexpr int HALF = FIRST / 2 * 2;
    const float2 pair = *reinterpret_cast<const float2*>(at + HALF);
    to[HALF] = pair.x, to[HALF + 1] = pair.y;
  } else {
    const float4 all = *reinterpret_cast<const float4*>(at);
    to[0] = all.x, to[1] = all.y, to[2] = all.z, to[3] = all.w;
  }
}

// Vectors V and up, from the one at `column`; zeros outside the image. A vector
// lies in it or outside, as W divides the width where W > 1.
template <int K, int S, int W, int V = 0>
__device__ __forceinline__ void row_words(const float* row, int column,
                                          int width, bool inside, float* word) {
  using Of = Words<K, S, W>;
  if constexpr (V < Of::COUNT) {
    constexpr int LAST = Of::SKIP + Of::NEED - 1 - V * W;
    constexpr int FIRST = V == 0 ? Of::SKIP : 0;
#pragma unroll
    for (int i = 0; i < W; ++i) word[V * W + i] = 0;
    const int at = column + V * W;
    if (inside && at >= 0 && at < width)
      load < W, FIRST, LAST<W ? LAST : W - 1>(row + at, word + V * W);
    row_words<K, S, W, V + 1>(row, column, width, inside, word);
  }
}
// --8<-- [end:words]

// --8<-- [start:kernel]
// A window of K x K, stride S in both directions, no dilation. A thread
// computes P rows of W results beside each other; `segments` of them are a row
// of results, `bands` the rows of a plane. It reads AHEAD rows of the image
// before it needs them; BLOCKS shall have room in an SM. W > 1: as many words
// are a vector, W divides the width of the image, all addresses are multiples
// of 16, and pad_x is K / 2.
template <int K, int S, int W, int P, int AHEAD, int BLOCKS>
__global__ void __launch_bounds__(128, BLOCKS)
    planes(const Shape s, const int segments, const int bands, const int count,
           const float* __restrict__ images, const float* __restrict__ weights,
           float* __restrict__ results) {
  using Of = Words<K, S, W>;
  constexpr int ROWS = (P - 1) * S + K, RING = AHEAD + 1;
  const unsigned i = blockIdx.x * 128u + threadIdx.x;
  if (i >= (unsigned)count) return;
  const int x = (int)(i % segments) * W;
  const unsigned rest = i / segments;
  const int y = (int)(rest % bands) * P;
  const unsigned which = rest / bands;  // plane
  const float* const from = images + (long long)which * s.height * s.width;
  const float* const filter = weights + which % s.groups * (K * K);

  const int top = y * S - s.pad_y;
  const int left = x * S - (W > 1 ? Of::LEFT : s.pad_x) - Of::SKIP;
  float word[RING][Of::COUNT * W];
  auto read = [&](int row) {
    const int at = top + row;
    const bool inside = at >= 0 && at < s.height;
    row_words<K, S, W>(from + (inside ? at * s.width : 0), left, s.width,
                       inside, word[row % RING]);
  };
#pragma unroll
  for (int row = 0; row < AHEAD; ++row) read(row);
  float weight[K * K];
#pragma unroll
  for (int j = 0; j < K * K; ++j) weight[j] = filter[j];

  // --8<-- [start:slide]
  float sum[P][W] = {};
#pragma unroll
  for (int row = 0; row < ROWS; ++row) {
    if (row + AHEAD < ROWS) read(row + AHEAD);
#pragma unroll
    for (int p = 0; p < P; ++p) {
      const int r = row - p * S;  // of the window
      if (r < 0 || r >= K) continue;
#pragma unroll
      for (int c = 0; c < K; ++c)
#pragma unroll
        for (int w = 0; w < W; ++w)
          sum[p][w] +=
              word[row % RING][Of::SKIP + w * S + c] * weight[r * K + c];
    }
  }
  // --8<-- [end:slide]

  float* const to = results + (long long)which * plane(s);
  const bool whole = s.out_width % W == 0;  // then a vector lies in the row
#pragma unroll
  for (int p = 0; p < P; ++p) {
    if (y + p >= s.out_height) return;
    float* const at = to + (y + p) * s.out_width + x;
    if (W == 4 && whole)
      *reinterpret_cast<float4*>(at) =
          make_float4(sum[p][0], sum[p][W > 1], sum[p][W / 2], sum[p][W - 1]);
    else if (W == 2 && whole)
      *reinterpret_cast<float2*>(at) = make_float2(sum[p][0], sum[p][W - 1]);
    else
#pragma unroll
      for (int w = 0; w < W; ++w)
        if (x + w < s.out_width) at[w] = sum[p][w];
  }
}
// --8<-- [end:kernel]
