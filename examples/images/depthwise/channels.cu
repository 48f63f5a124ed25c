// Depthwise convolution in bf16, NHWC: neighboring channels are neighboring
// words. Sums in fp32.
//
//   Part      channels that a thread reads at once
//   channels  the kernel: a thread computes P results of C channels
//
// Arrays: images [image][row][column][channel], weights
// [channel][row][column], results as images.
//
// requires: sm_80
// @instance channels<3,1,4,7,false,2>
// @instance channels<3,2,4,7,false,2>
// @instance channels<5,1,4,7,false,2>
// @instance channels<5,2,4,7,false,2>
// @instance channels<7,1,4,7,false,2>
// @instance channels<7,2,4,7,false,2>
// @instance channels<3,1,8,4,false,2>
// @instance channels<3,1,2,7,false,3>
// @instance channels<3,2,2,7,false,3>
// @instance channels<5,1,2,7,false,3>
// @instance channels<5,2,2,7,false,3>
// @instance channels<7,1,2,7,false,3>
// @instance channels<7,2,2,7,false,3>
#include <cuda_bf16.h>

#include "images/shape.cuh"

// --8<-- [start:part]
template <int C>
struct Part;
template <>
struct Part<8> {
  using Type = uint4;
};
template <>
struct Part<4> {
  using Type = uint2;
};
template <>
struct Part<2> {
  using Type = unsigned;
};

// C numbers of bf16 that lie in words, as fp32.
template <int C>
__device__ __forceinline__ void widen(const typename Part<C>::Type& from,
                                      float* to) {
  const unsigned* const words = reinterpret_cast<const unsigned*>(&from);
#pragma unroll
  for (int i = 0; i < C / 2; ++i) {
    to[2 * i] = __uint_as_float(words[i] << 16);
    to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}

template <int C>
__device__ __forceinline__ typename Part<C>::Type narrow(const float* from) {
  typename Part<C>::Type to;
  __nv_bfloat162* const pairs = reinterpret_cast<__nv_bfloat162*>(&to);
#pragma unroll
  for (int i = 0; i < C / 2; ++i)
    pairs[i] = __floats2bfloat162_rn(from[2 * i], from[2 * i + 1]);
  return to;
}
// --8<-- [end:part]

// What a block computes: threads are lanes * across * down, of which `lanes`
// have neighboring channels, `across` strips of P results beside each other,
// `down` rows. The others: blocks for all channels, and in a row and a
// column of results.
struct Blocks {
  int lanes, across, down, parts, wide, high;
};

// --8<-- [start:kernel]
// A window of K x K, stride S in both directions, no dilation. C divides the
// number of channels, all addresses are multiples of 16. Shared memory: the
// weights of the block's channels in fp32, K * K rows. AHEAD: a row is read
// while the one before it is computed with.
template <int K, int S, int C, int P, bool AHEAD, int BLOCKS>
__global__ void __launch_bounds__(256, BLOCKS)
    channels(const Shape s, const Blocks b,
             const __nv_bfloat16* __restrict__ images,
             const __nv_bfloat16* __restrict__ weights,
             __nv_bfloat16* __restrict__ results) {
  using Word = typename Part<C>::Type;
  constexpr int COLUMNS = (P - 1) * S + K;
  constexpr int G = C < 4 ? C : 4;  // weights that a lane reads at once
  extern __shared__ float4 shared[];
  float* const held = reinterpret_cast<float*>(shared);

  int rest = blockIdx.x;
  const int part = rest % b.parts;
  rest /= b.parts;
  const int block_x = rest % b.wide;
  rest /= b.wide;
  const int block_y = rest % b.high, image = rest / b.high;

  // --8<-- [start:weights]
  // In a row of `held` all lanes have their first G weights, then their next G.
  const int own = b.lanes * C, first = part * own, pitch = (own + 7) / 4 * 4;
  const int most = min(own, s.groups - first) * (K * K);
  for (int i = threadIdx.x; i < most; i += blockDim.x) {
    const int channel = i / (K * K), tap = i % (K * K);
    const int lane = channel / C, which = channel % C;
    held[tap * pitch + (which / G * b.lanes + lane) * G + which % G] =
        __bfloat162float(weights[first * (K * K) + i]);
  }
  __syncthreads();
  // --8<-- [end:weights]

  const int lane = threadIdx.x % b.lanes, patch = threadIdx.x / b.lanes;
  const int channel = first + lane * C;
  const int x = (block_x * b.across + patch % b.across) * P;
  const int y = block_y * b.down + patch / b.across;
  if (channel >= s.groups || x >= s.out_width || y >= s.out_height) return;
  const int top = y * S - s.pad_y, left = x * S - s.pad_x;
  unsigned inside = 0;  // a bit for each column
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j)
    inside |= (unsigned)(left + j >= 0 && left + j < s.width) << j;
  const long long line = (long long)s.width * s.groups;
  const __nv_bfloat16* from = images +
                              (image * (long long)s.height + top) * line +
                              (long long)left * s.groups + channel;

  auto read = [&](int row, Word(&word)[COLUMNS]) {
    const unsigned wanted = top + row >= 0 && top + row < s.height ? inside : 0;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
      word[j] = Word{};
      if (wanted >> j & 1)
        word[j] = *reinterpret_cast<const Word*>(from + j * s.groups);
    }
    from += line;
  };
  Word word[COLUMNS];
  if (AHEAD) read(0, word);
  float sum[P][C] = {};
#pragma unroll 1
  for (int row = 0; row < K; ++row) {
    Word next[COLUMNS];
    if (!AHEAD)
      read(row, word);
    else if (row + 1 < K)
      read(row + 1, next);
    float weight[K][C];
#pragma unroll
    for (int c = 0; c < K; ++c)
#pragma unroll
      for (int g = 0; g < C; g += G) {
        const float* const at =
            held + (row * K + c) * pitch + g * b.lanes + lane * G;
        if constexpr (G == 4) {
          const float4 four = *reinterpret_cast<const float4*>(at);
          weight[c][g] = four.x, weight[c][g + 1] = four.y;
          weight[c][g + 2] = four.z, weight[c][g + 3] = four.w;
        } else {
          const float2 two = *reinterpret_cast<const float2*>(at);
          weight[c][g] = two.x, weight[c][g + 1] = two.y;
        }
      }
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
      float value[C];
      widen<C>(word[j], value);
#pragma unroll
      for (int p = 0; p < P; ++p) {
        const int c = j - p * S;  // of the window
        if (c < 0 || c >= K) continue;
#pragma unroll
        for (int k = 0; k < C; ++k) sum[p][k] += value[k] * weight[c][k];
      }
    }
    if (AHEAD)
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) word[j] = next[j];
  }

  __nv_bfloat16* const to =
      results +
      ((image * (long long)s.out_height + y) * s.out_width + x) * s.groups +
      channel;
#pragma unroll
  for (int p = 0; p < P; ++p)
    if (x + p < s.out_width)
      *reinterpret_cast<Word*>(to + (long long)p * s.groups) =
          narrow<C>(sum[p]);
}
// --8<-- [end:kernel]
