// Rung 3: a block has a tile of results of one filter, and copies what their
// windows cover into shared memory: the tile of the image and a halo.
//
//   direct_tiled  the kernel
//
// Arrays as in naive.cu. Blocks of 32 x 8 threads, one for each tile of 32 x 8
// results; dynamic shared memory: high * wide words.
//
// requires: sm_75
#include "images/shape.cuh"

// --8<-- [start:kernel]
constexpr int WIDE = 32, HIGH = 8;

// high, wide: rows and columns of the image that the windows of a tile cover;
// down, across: tiles in the results of an image.
extern "C" __global__ void direct_tiled(const Shape s, const int high,
                                        const int wide, const int down,
                                        const int across,
                                        const float* __restrict__ images,
                                        const float* __restrict__ weights,
                                        float* __restrict__ results) {
  extern __shared__ float tile[];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int column = blockIdx.x % across * WIDE + tx;
  const int row = blockIdx.x / across % down * HIGH + ty;
  const long long which = blockIdx.x / across / down;  // filter of an image
  const int filters = s.groups * s.filters;
  const long long image = which / filters, filter = which % filters;
  const bool mine = row < s.out_height && column < s.out_width;
  const int top = (row - ty) * s.stride_y - s.pad_y,
            left = (column - tx) * s.stride_x - s.pad_x;
  const float* from = images + (image * s.groups + filter / s.filters) *
                                   s.channels * ((long long)s.height * s.width);
  const float* weight = weights + filter * s.channels * window(s);
  float sum = 0;
  for (int c = 0; c < s.channels; ++c) {
    for (int i = ty * WIDE + tx; i < high * wide; i += WIDE * HIGH) {
      const int y = top + i / wide, x = left + i % wide;
      const bool inside = y >= 0 && y < s.height && x >= 0 && x < s.width;
      tile[i] = inside ? from[y * s.width + x] : 0.0f;  // the padding
    }
    __syncthreads();
    if (mine) {
      const float* const first =
          tile + ty * s.stride_y * wide + tx * s.stride_x;
      for (int r = 0; r < s.rows; ++r) {
        for (int q = 0; q < s.columns; ++q)
          sum += first[r * s.dilation_y * wide + q * s.dilation_x] *
                 weight[r * s.columns + q];
      }
    }
    __syncthreads();  // the next channel overwrites the tile
    from += s.height * s.width;
    weight += window(s);
  }
  if (mine) results[which * plane(s) + row * s.out_width + column] = sum;
}
// --8<-- [end:kernel]
