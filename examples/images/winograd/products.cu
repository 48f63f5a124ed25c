// Many products of one size, C[b] = A[b]^T B[b], with the parts of the final
// kernel of the part on products. Its loop stands here again; what is gone is
// what a product of our own making does not need: other factors than 1, parts
// of a tile, edges within four words.
//
// requires: sm_80
#include "published/final.cuh"

// A[b] is depth x m, B[b] depth x n, C[b] rows x n; rows are what C has of m.
// m and n are multiples of 4 and the arrays begin at multiples of 16 bytes, so
// all copies are of four words. Grid: x the tiles of a product, y the products.
// Parameters of the template as in final.cu.
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int TM, int TN, int STAGES, int BLOCKS>
__global__ void __launch_bounds__(BM* BN / (TM * TN), BLOCKS)
    winograd_products(const int m, const int n, const int depth, const int rows,
                      const float* __restrict__ A, const float* __restrict__ B,
                      float* __restrict__ C) {
  constexpr int THREADS = BM * BN / (TM * TN),
                LANE_ROWS = BM % (8 * TM) == 0 ? 8 : 4,
                LANE_COLUMNS = 32 / LANE_ROWS,
                WARP_COLUMNS = BN / (LANE_COLUMNS * TN);
  using OfA = Operand<BM, BK, THREADS, 4, false>;
  using OfB = Operand<BN, BK, THREADS, 4, false>;
  extern __shared__ float4 shared[];
  float* const tiles_a = reinterpret_cast<float*>(shared);
  float* const tiles_b = tiles_a + STAGES * OfA::TILE;

  const int2 tile =
      place_of(blockIdx.x, (rows + BM - 1) / BM, (n + BN - 1) / BN);
  const size_t b_number = blockIdx.y;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / WARP_COLUMNS * (LANE_ROWS * TM);
  const int warp_column = warp % WARP_COLUMNS * (LANE_COLUMNS * TN);
  const int steps = (depth + BK - 1) / BK;
  OfA a_copy(A + b_number * depth * m, m, tile.y * BM, m, 0, tiles_a);
  OfB b_copy(B + b_number * depth * n, n, tile.x * BN, n, 0, tiles_b);
  // --8<-- [end:kernel]

  a_copy.template copy<false>(0, depth - (steps - 1) * BK);
  b_copy.template copy<false>(0, depth - (steps - 1) * BK);
  a_copy.advance(depth - (steps - 1) * BK);
  b_copy.advance(depth - (steps - 1) * BK);
  commit();
#pragma unroll
  for (int s = 1; s < STAGES - 1; ++s) {
    if (s < steps) {
      a_copy.template copy<true>(s, BK);
      b_copy.template copy<true>(s, BK);
      a_copy.advance(BK);
      b_copy.advance(BK);
    }
    commit();
  }
  wait_for_all_but<STAGES - 2>();
  __syncthreads();

  const float* a_from = tiles_a + warp_row + lane_row<LANE_ROWS>() * 4;
  const float* b_from = tiles_b + warp_column + lane_column<LANE_ROWS>() * 4;
  float a[2][TM], b[2][TN], sum[TN][TM] = {};
  read<TM, LANE_ROWS * 4>(a[0], a_from);
  read<TN, LANE_COLUMNS * 4>(b[0], b_from);
  int slot = 0, free_slot = STAGES - 1;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const bool more = step + STAGES - 1 < steps;
#pragma unroll
    for (int kk = 0; kk < BK; ++kk) {
      if (kk == 2) a_copy.template copy<true>(free_slot, BK, more);
      if (kk == BK / 2) {
        b_copy.template copy<true>(free_slot, BK, more);
        commit();
        free_slot = slot;
      }
      if (kk == BK - 2) {
        a_copy.advance(BK);
        b_copy.advance(BK);
      }
      if (kk == BK - 1) {
        wait_for_all_but<STAGES - 2>();
        __syncthreads();
        slot = slot + 1 < STAGES ? slot + 1 : 0;
        a_from =
            tiles_a + slot * OfA::TILE + warp_row + lane_row<LANE_ROWS>() * 4;
        b_from = tiles_b + slot * OfB::TILE + warp_column +
                 lane_column<LANE_ROWS>() * 4;
      }
      const int next = (kk + 1) % BK;
      read<TM, LANE_ROWS * 4>(a[(kk + 1) % 2], a_from + next * OfA::PITCH);
      read<TN, LANE_COLUMNS * 4>(b[(kk + 1) % 2], b_from + next * OfB::PITCH);
      multiply(sum, a[kk % 2], b[kk % 2]);
    }
  }

  constexpr int HIGH = LANE_ROWS * 4, WIDE = LANE_COLUMNS * TN,
                PITCH = HIGH + 4;
  constexpr int ACROSS = WIDE < 32 ? WIDE : 32, DOWN = 32 / ACROSS * 4;
  float* const columns = tiles_a + warp * (WIDE * PITCH);
  const int lane = threadIdx.x % 32, x = lane % ACROSS, y = lane / ACROSS * 4;
  __syncthreads();
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
    const int top = tile.y * BM + warp_row + i / 4 * HIGH + y,
              left = tile.x * BN + warp_column + x;
    float* c = C + (b_number * rows + top) * n + left;
#pragma unroll 2
    for (int down = 0; down < HIGH; down += DOWN, c += DOWN * (size_t)n) {
#pragma unroll
      for (int right = 0; right < WIDE; right += ACROSS) {
        const float4 four = *reinterpret_cast<const float4*>(
            columns + (x + right) * PITCH + y + down);
        const float some[] = {four.y, four.x, four.w, four.z};
#pragma unroll
        for (int r = 0; r < 4; ++r)
          if (top + down + r < rows && left + right < n)
            c[r * (size_t)n + right] = some[r];
      }
    }
    __syncwarp();
  }
}

// Instances that are compiled by the tests:
// @instance winograd_products<64,128,16,8,8,3,3>
// @instance winograd_products<64,128,32,8,8,2,3>
// @instance winograd_products<64,64,16,8,8,3,6>
// @instance winograd_products<64,64,16,8,4,4,4>
// @instance winograd_products<32,64,16,4,8,4,8>
// @instance winograd_products<32,32,16,4,4,4,8>
// @instance winograd_products<16,128,16,4,8,4,6>
// @instance winograd_products<128,16,16,8,4,4,6>
