// How a tile of results in fp32 goes to NCHW.
//
//   store_tile  a warp's results to global memory
#pragma once
#include "published/final.cuh"

// As in the product: a warp puts four filters of all its pixels into shared
// memory, and takes them out so that neighboring lanes have neighboring pixels.
// columns: the warp's own WIDE * PITCH words. filters: how many there are from
// the warp's first one on. at(i): where the first filter of the warp's pixel i
// goes, or null; the filters lie `plane` words apart.
// --8<-- [start:store]
template <int LANE_ROWS, int TM, int TN, class Place>
__device__ __forceinline__ void store_tile(float (&sum)[TN][TM], float* columns,
                                           int filters, int plane,
                                           const Place& at) {
  constexpr int LANE_COLUMNS = 32 / LANE_ROWS, HIGH = LANE_ROWS * 4,
                WIDE = LANE_COLUMNS * TN, PITCH = HIGH + 4;
  constexpr int ACROSS = WIDE < 32 ? WIDE : 32, DOWN = 32 / ACROSS * 4;
  const int lane = threadIdx.x % 32, x = lane % ACROSS, y = lane / ACROSS * 4;
#pragma unroll
  for (int i = 0; i < TM; i += 4) {
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      const int column =
          j / 4 * (LANE_COLUMNS * 4) + lane_column<LANE_ROWS>() * 4 + j % 4;
      *reinterpret_cast<float4*>(columns + column * PITCH +
                                 lane_row<LANE_ROWS>() * 4) =
          reinterpret_cast<float4&>(sum[j][i]);
    }
    __syncwarp();
    const int top = i / 4 * HIGH + y;
#pragma unroll
    for (int right = 0; right < WIDE; right += ACROSS) {
      float* const first = at(x + right);
      float* const c = first + top * (long long)plane;
#pragma unroll 2
      for (int down = 0; down < HIGH; down += DOWN) {
        const float4 four = *reinterpret_cast<const float4*>(
            columns + (x + right) * PITCH + y + down);
        // The sum of row i stands at i ^ 1, as `multiply` has it.
        const float rows[] = {four.y, four.x, four.w, four.z};
#pragma unroll
        for (int r = 0; r < 4; ++r)
          if (first && top + down + r < filters)
            c[(down + r) * (long long)plane] = rows[r];
      }
    }
    __syncwarp();
  }
}
// --8<-- [end:store]
