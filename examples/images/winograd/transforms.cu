// The three transforms of Winograd's convolution with windows of 3 x 3 and
// strides of 1, in fp32. A tile of M x M results has (M + 2) x (M + 2) words of
// the image; each of these SIZE * SIZE places is a product of its own.
//
//   first_of          where a tile's results begin
//   words_of          images  -> V[place][channel][tile]
//   weights_of        weights -> U[place][channel][filter of the group]
//   winograd_inputs   both
//   winograd_results  M[place][filter][tile] -> results
//
// With dilation, the results dilation apart from each other are a convolution
// of their own; tiles of these phases lie side by side.
//
// requires: sm_75
// @instance winograd_inputs<2>
// @instance winograd_inputs<4>
// @instance winograd_results<2,1>
// @instance winograd_results<2,2>
// @instance winograd_results<4,1>
// @instance winograd_results<4,2>
// @instance winograd_results<4,4>
#include "images/shape.cuh"
#include "images/winograd/minimal.cuh"

// The first row (or column) of a tile's results: tile `at` of those that divide
// `extent` rows. Neighboring tiles are of neighboring phases.
template <int M>
__device__ __forceinline__ int first_of(int at, int extent, int dilation) {
  const int phases = min(dilation, extent), step = at / phases;
  return at - step * phases + step * (dilation * M);
}

// V = words of a tile, transformed. A thread has one tile; lanes of a warp have
// neighboring ones and store neighboring words. Tiles from the last to `pitch`
// are zeros. down, across: tiles of an image. The block's number counts tiles,
// blockIdx.y, below `high`, channels.
// --8<-- [start:words]
template <int M>
__device__ __forceinline__ void words_of(const Shape& s, const int down,
                                         const int across, const int pitch,
                                         const int high,
                                         const float* __restrict__ images,
                                         float* __restrict__ to) {
  constexpr int SIZE = Minimal<M>::SIZE;
  const unsigned tile = blockIdx.x * 128 + threadIdx.x;
  if (tile >= pitch) return;
  const int image = tile / (down * across), place = tile % (down * across);
  const int y =
      first_of<M>(place / across, s.out_height, s.dilation_y) - s.pad_y;
  const int x =
      first_of<M>(place % across, s.out_width, s.dilation_x) - s.pad_x;
  unsigned rows = 0, columns = 0;  // bits: which lie inside the image
#pragma unroll
  for (int i = 0; i < SIZE; ++i) {
    rows |= ((unsigned)(y + i * s.dilation_y) < (unsigned)s.height) << i;
    columns |= ((unsigned)(x + i * s.dilation_x) < (unsigned)s.width) << i;
  }
  if (image >= s.images) rows = 0;
  const int channels = s.groups * s.channels;
  const size_t apart = (size_t)channels * pitch;
  for (int channel = blockIdx.y; channel < channels; channel += high) {
    const float* const from = images +
                              ((long long)image * channels + channel) *
                                  ((long long)s.height * s.width) +
                              (long long)y * s.width + x;
    // --8<-- [start:tile]
    float half[SIZE][SIZE];
#pragma unroll
    for (int j = 0; j < SIZE; ++j) {
      float d[SIZE], t[SIZE];
#pragma unroll
      for (int i = 0; i < SIZE; ++i)
        d[i] =
            rows >> i & columns >> j & 1
                ? from[(long long)i * s.dilation_y * s.width + j * s.dilation_x]
                : 0.0f;
      Minimal<M>::words(t, d);
#pragma unroll
      for (int i = 0; i < SIZE; ++i) half[i][j] = t[i];
    }
    float* v = to + (size_t)channel * pitch + tile;
#pragma unroll
    for (int i = 0; i < SIZE; ++i) {
      float t[SIZE];
      Minimal<M>::words(t, half[i]);
#pragma unroll
      for (int j = 0; j < SIZE; ++j, v += apart) *v = t[j];
    }
    // --8<-- [end:tile]
  }
}
// --8<-- [end:words]

// U = weights, transformed and turned: a filter's number runs fastest, and
// filters from the last to `pitch` are zeros. A block has 32 filters of 4
// channels; it is block `block`, of `blocks` that share all of them.
// --8<-- [start:weights]
template <int M>
__device__ __forceinline__ void weights_of(const Shape& s, const int pitch,
                                           int block, const int blocks,
                                           const float* __restrict__ weights,
                                           float* __restrict__ to) {
  constexpr int SIZE = Minimal<M>::SIZE;
  const int channels = s.groups * s.channels, across = (pitch + 31) / 32;
  const size_t apart = (size_t)channels * pitch;
  for (;; block += blocks) {
    const int filter = block % across * 32 + threadIdx.x % 32;
    const int channel = block / across * 4 + threadIdx.x / 32;
    if (block / across * 4 >= channels) return;
    if (filter >= pitch || channel >= channels) continue;
    const int group = channel / s.channels;
    const float* const from =
        weights + (((size_t)group * s.filters + filter) * s.channels +
                   (channel - group * s.channels)) *
                      9;
    float half[SIZE][3];
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      float g[3], t[SIZE];
#pragma unroll
      for (int i = 0; i < 3; ++i)
        g[i] = filter < s.filters ? from[i * 3 + j] : 0.0f;
      Minimal<M>::weights(t, g);
#pragma unroll
      for (int i = 0; i < SIZE; ++i) half[i][j] = t[i];
    }
    float* u = to + (size_t)channel * pitch + filter;
#pragma unroll
    for (int i = 0; i < SIZE; ++i) {
      float t[SIZE];
      Minimal<M>::weights(t, half[i]);
#pragma unroll
      for (int j = 0; j < SIZE; ++j, u += apart) *u = t[j];
    }
  }
}
// --8<-- [end:weights]

// Both in one launch, so that one fills what the other leaves idle. Grid: x
// tiles; y first `high` rows of blocks for words, then rows of blocks for
// weights. pitch: of V; filters: of U.
// --8<-- [start:inputs]
template <int M>
__global__ void __launch_bounds__(128)
    winograd_inputs(const Shape s, const int down, const int across,
                    const int pitch, const int filters, const int high,
                    const float* __restrict__ images, float* __restrict__ v,
                    const float* __restrict__ weights, float* __restrict__ u) {
  if (blockIdx.y < high)
    words_of<M>(s, down, across, pitch, high, images, v);
  else
    weights_of<M>(s, filters, (blockIdx.y - high) * gridDim.x + blockIdx.x,
                  (gridDim.y - high) * gridDim.x, weights, u);
}
// --8<-- [end:inputs]

// Results of a tile from the products of its places. VEC: words of a store, 1,
// 2 or 4; 2 and 4 ask for a width and an address that are multiples of it, and
// no dilation to the right. Grid: x tiles, y filters of all groups.
// --8<-- [start:results]
template <int M, int VEC>
__global__ void __launch_bounds__(128)
    winograd_results(const Shape s, const int down, const int across,
                     const int pitch, const float* __restrict__ products,
                     float* __restrict__ results) {
  constexpr int SIZE = Minimal<M>::SIZE;
  const unsigned tile = blockIdx.x * 128 + threadIdx.x;
  const int image = tile / (down * across), place = tile % (down * across);
  if (image >= s.images) return;
  const int y = first_of<M>(place / across, s.out_height, s.dilation_y);
  const int x = first_of<M>(place % across, s.out_width, s.dilation_x);
  const int filters = s.groups * s.filters;
  const size_t apart = (size_t)filters * pitch;
  for (int filter = blockIdx.y; filter < filters; filter += gridDim.y) {
    const float* const from = products + (size_t)filter * pitch + tile;
    float half[M][SIZE];
#pragma unroll
    for (int j = 0; j < SIZE; ++j) {
      float m[SIZE], t[M];
#pragma unroll
      for (int i = 0; i < SIZE; ++i) m[i] = from[(i * SIZE + j) * apart];
      Minimal<M>::results(t, m);
#pragma unroll
      for (int i = 0; i < M; ++i) half[i][j] = t[i];
    }
    float* const to = results + ((size_t)image * filters + filter) *
                                    ((size_t)s.out_height * s.out_width);
#pragma unroll
    for (int i = 0; i < M; ++i) {
      const int row = y + i * s.dilation_y;
      float t[M];
      Minimal<M>::results(t, half[i]);
      float* const line = to + (size_t)row * s.out_width;
#pragma unroll
      for (int j = 0; j < M; j += VEC) {
        const int column = x + j * (VEC == 1 ? s.dilation_x : 1);
        if (row >= s.out_height || column >= s.out_width) continue;
        if (VEC == 4)
          *reinterpret_cast<float4*>(line + column) =
              make_float4(t[j], t[j + 1], t[j + 2 < M ? j + 2 : j],
                          t[j + 3 < M ? j + 3 : j]);
        else if (VEC == 2)
          *reinterpret_cast<float2*>(line + column) =
              make_float2(t[j], t[j + 1]);
        else
          line[column] = t[j];
      }
    }
  }
}
// --8<-- [end:results]
