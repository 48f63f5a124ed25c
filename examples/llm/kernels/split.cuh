// Sums of the blocks of a cluster, added up through each other's shared memory.
#pragma once
#include "cluster.cuh"
#include "linear.cuh"

// --8<-- [start:sums]
// The sums of a tile as rows of fp32 in the shared memory of each block of the
// cluster, where its slabs were before. Rows are BN + 8 elements apart: four
// rows of eight sums, what half a warp puts there at once, are in all 32 banks.
template <class T, int SPLIT>
struct Parts {
  static constexpr int PITCH = T::COLUMNS + 8;
  static_assert(T::ROWS * PITCH * 4 <= T::SHARED, "room for sums");
  unsigned of[SPLIT];  // where those of each block begin

  __device__ __forceinline__ Parts() {
    extern __shared__ __align__(128) unsigned char shared[];
#pragma unroll
    for (int rank = 0; rank < SPLIT; ++rank) of[rank] = in_block(shared, rank);
  }

  // This block's, when all of its warps are done with their slabs.
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

  // Two neighboring results: the parts of all blocks, in the order of the
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
