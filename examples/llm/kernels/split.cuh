// How the blocks of a cluster add up their sums through each other's shared
// memory; for linear_split.cu.
#pragma once
#include "linear.cuh"
#include "ptx/cluster.cuh"

// --8<-- [start:sums]
// The sums of a tile, as rows of fp32 in the shared memory of each block of the
// cluster, in the place of its slabs. Rows are COLUMNS + 8 elements apart: half
// a warp stores four rows of eight sums at once, and these lie in all 32 banks.
// T: the Tile of linear.cuh. SPLIT: blocks of the cluster.
template <class T, int SPLIT>
struct Parts {
  static constexpr int PITCH = T::COLUMNS + 8;
  static_assert(T::ROWS * PITCH * 4 <= T::SHARED, "room for sums");
  unsigned of[SPLIT];  // where the sums of each block begin

  __device__ __forceinline__ Parts() {
    extern __shared__ __align__(128) unsigned char shared[];
#pragma unroll
    for (int rank = 0; rank < SPLIT; ++rank) of[rank] = in_block(shared, rank);
  }

  // Stores this block's sums; the barrier is there because a warp may still
  // multiply from the slabs in this place.
  static __device__ __forceinline__ void put(const typename T::Sums& sum) {
    extern __shared__ __align__(128) unsigned char shared[];
    const int lane = threadIdx.x % 32;
    float* const to = reinterpret_cast<float*>(shared) +
                      (T::warp_row() + lane / 4) * PITCH + T::warp_column() +
                      lane % 4 * 2;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < T::M; ++i)
#pragma unroll
      for (int j = 0; j < 2 * T::N; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          *reinterpret_cast<float2*>(to + (i * 16 + half * 8) * PITCH + j * 8) =
              make_float2(sum[i][j][2 * half], sum[i][j][2 * half + 1]);
  }

  // Two neighboring results: the sums of all blocks, added in the order of
  // ranks.
  __device__ __forceinline__ float2 added(int row, int column) const {
    float2 part[SPLIT];
#pragma unroll
    for (int rank = 0; rank < SPLIT; ++rank)
      part[rank] = load_pair(of[rank] + (row * PITCH + column) * 4);
#pragma unroll
    for (int rank = 1; rank < SPLIT; ++rank)
      part[0].x += part[rank].x, part[0].y += part[rank].y;
    return part[0];
  }
};
// --8<-- [end:sums]
