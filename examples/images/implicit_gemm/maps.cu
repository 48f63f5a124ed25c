// Implicit GEMM, first rung: every word of the factor B is found by the index
// maps when it is needed, with divisions. One thread per result of a tile.
//
//   implicit_maps  the kernel
//
// requires: sm_75
#include "images/shape.cuh"

constexpr int EDGE = 16;

// Grid: x the tiles of EDGE pixels, y those of EDGE filters, z the groups.
// --8<-- [start:kernel]
extern "C" __global__ void implicit_maps(const Shape s,
                                         const float* __restrict__ images,
                                         const float* __restrict__ weights,
                                         float* __restrict__ results) {
  __shared__ float a[EDGE][EDGE], b[EDGE][EDGE];
  const int tx = threadIdx.x, ty = threadIdx.y, group = blockIdx.z;
  const int depth = s.channels * s.rows * s.columns;
  const int plane = s.out_height * s.out_width;
  const long long pixel = (long long)blockIdx.x * EDGE + tx;
  const long long image = pixel / plane;
  const int place = (int)(pixel % plane);
  const int filter = blockIdx.y * EDGE + ty;
  const int y = place / s.out_width * s.stride_y - s.pad_y,
            x = place % s.out_width * s.stride_x - s.pad_x;
  float sum = 0;
  for (int start = 0; start < depth; start += EDGE) {
    // --8<-- [start:word]
    // Row k of B is channel c, row r and column q of the window.
    const int k = start + ty, window = s.rows * s.columns;
    const int c = k / window, r = k % window / s.columns, q = k % s.columns;
    const int from_y = y + r * s.dilation_y, from_x = x + q * s.dilation_x;
    const bool inside = k < depth && image < s.images && from_y >= 0 &&
                        from_y < s.height && from_x >= 0 && from_x < s.width;
    b[ty][tx] =
        inside
            ? images[(((image * s.groups + group) * s.channels + c) * s.height +
                      from_y) *
                         s.width +
                     from_x]
            : 0.0f;
    // --8<-- [end:word]
    a[ty][tx] = filter < s.filters && start + tx < depth
                    ? weights[((long long)group * s.filters + filter) * depth +
                              start + tx]
                    : 0.0f;
    __syncthreads();
    for (int i = 0; i < EDGE; ++i) sum += a[ty][i] * b[i][tx];
    __syncthreads();
  }
  if (image < s.images && filter < s.filters)
    results[((image * s.groups + group) * s.filters + filter) * plane + place] =
        sum;
}
// --8<-- [end:kernel]
