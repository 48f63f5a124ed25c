// Many products of one size, C[b] = A[b]^T B[b], with the parts of the final
// kernel of the part on products.
//
//   store              a thread's results
//   winograd_products  a block for each tile of each product
//   winograd_stay      blocks that stay and go from tile to tile
//
// A[b] is depth x m, B[b] depth x n, C[b] rows x n; rows are what C has of m.
// m and n are multiples of 4 and the arrays begin at multiples of 16 bytes, so
// all copies and stores are of four words. Parameters of the templates as in
// final.cu.
//
// requires: sm_80
#include "published/final.cuh"

// A thread's results: patches of 4 x 4, of which a row is four words side by
// side. The sum of row i stands at i ^ 1, as `multiply` has it.
// --8<-- [start:store]
template <int TM, int TN, int LANE_ROWS>
__device__ __forceinline__ void store(const float (&sum)[TN][TM], float* C,
                                      int top, int left, int rows, int n) {
  constexpr int HIGH = LANE_ROWS * 4, WIDE = 32 / LANE_ROWS * 4;
  top += lane_row<LANE_ROWS>() * 4;
  left += lane_column<LANE_ROWS>() * 4;
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int row = top + i / 4 * HIGH + i % 4;
    float* const c = C + (size_t)row * n + left;
#pragma unroll
    for (int j = 0; j < TN; j += 4)
      if (row < rows && left + j / 4 * WIDE < n)
        *reinterpret_cast<float4*>(c + j / 4 * WIDE) =
            make_float4(sum[j][i ^ 1], sum[j + 1][i ^ 1], sum[j + 2][i ^ 1],
                        sum[j + 3][i ^ 1]);
  }
}
// --8<-- [end:store]

// Grid: x the tiles of a product, y the products.
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
  store<TM, TN, LANE_ROWS>(sum, C + b_number * rows * n, tile.y * BM + warp_row,
                           tile.x * BN + warp_column, rows, n);
}

// The same for a depth that is a multiple of BK, by blocks that stay. The
// copies of a block's next tile begin while it multiplies the last steps of
// this one, and go on while it stores: no tile but the first waits for its
// first words. Grid: as many blocks as the GPU holds, or one for each of the
// `tiles` of all products.
// --8<-- [start:stay]
template <int BM, int BN, int BK, int TM, int TN, int STAGES, int BLOCKS>
__global__ void __launch_bounds__(BM* BN / (TM * TN), BLOCKS)
    winograd_stay(const int m, const int n, const int depth, const int rows,
                  const int tiles, const float* __restrict__ A,
                  const float* __restrict__ B, float* __restrict__ C) {
  constexpr int THREADS = BM * BN / (TM * TN),
                LANE_ROWS = BM % (8 * TM) == 0 ? 8 : 4,
                LANE_COLUMNS = 32 / LANE_ROWS,
                WARP_COLUMNS = BN / (LANE_COLUMNS * TN);
  using OfA = Operand<BM, BK, THREADS, 4, false>;
  using OfB = Operand<BN, BK, THREADS, 4, false>;
  extern __shared__ float4 shared[];
  float* const tiles_a = reinterpret_cast<float*>(shared);
  float* const tiles_b = tiles_a + STAGES * OfA::TILE;

  const int tile_rows = (rows + BM - 1) / BM, tile_columns = (n + BN - 1) / BN;
  const int each = tile_rows * tile_columns, steps = depth / BK;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / WARP_COLUMNS * (LANE_ROWS * TM);
  const int warp_column = warp % WARP_COLUMNS * (LANE_COLUMNS * TN);

  // What is copied: step `coming` of tile `ahead`.
  int ahead = blockIdx.x, coming = 0;
  const auto of_a = [&](int all) {
    const int number = all / each;
    const int2 at = place_of(all - number * each, tile_rows, tile_columns);
    return OfA(A + (size_t)number * depth * m, m, at.y * BM, m, 0, tiles_a);
  };
  const auto of_b = [&](int all) {
    const int number = all / each;
    const int2 at = place_of(all - number * each, tile_rows, tile_columns);
    return OfB(B + (size_t)number * depth * n, n, at.x * BN, n, 0, tiles_b);
  };
  OfA a_copy = of_a(ahead);
  OfB b_copy = of_b(ahead);
  const auto advance = [&] {
    if (++coming < steps) {
      a_copy.advance(BK);
      b_copy.advance(BK);
    } else if (coming = 0, (ahead += gridDim.x) < tiles) {
      a_copy = of_a(ahead);
      b_copy = of_b(ahead);
    }
  };
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    a_copy.template copy<true>(s, BK, ahead < tiles);
    b_copy.template copy<true>(s, BK, ahead < tiles);
    advance();
    commit();
  }
  wait_for_all_but<STAGES - 2>();
  __syncthreads();

  const float* a_from = tiles_a + warp_row + lane_row<LANE_ROWS>() * 4;
  const float* b_from = tiles_b + warp_column + lane_column<LANE_ROWS>() * 4;
  float a[2][TM], b[2][TN];
  read<TM, LANE_ROWS * 4>(a[0], a_from);
  read<TN, LANE_COLUMNS * 4>(b[0], b_from);
  int slot = 0, free_slot = STAGES - 1;
#pragma unroll 1
  for (int all = blockIdx.x; all < tiles; all += gridDim.x) {
    float sum[TN][TM] = {};
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
#pragma unroll
      for (int kk = 0; kk < BK; ++kk) {
        if (kk == 2) a_copy.template copy<true>(free_slot, BK, ahead < tiles);
        if (kk == BK / 2) {
          b_copy.template copy<true>(free_slot, BK, ahead < tiles);
          commit();
          free_slot = slot;
        }
        if (kk == BK - 2) advance();
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
    const int number = all / each;
    const int2 at = place_of(all - number * each, tile_rows, tile_columns);
    store<TM, TN, LANE_ROWS>(sum, C + (size_t)number * rows * n,
                             at.y * BM + warp_row, at.x * BN + warp_column,
                             rows, n);
  }
}
// --8<-- [end:stay]

// Instances that are compiled by the tests:
// @instance winograd_products<64,128,16,8,8,3,3>
// @instance winograd_products<64,64,16,8,8,3,6>
// @instance winograd_products<64,64,16,8,4,4,4>
// @instance winograd_products<32,64,16,4,8,4,8>
// @instance winograd_products<32,32,16,4,4,4,8>
// @instance winograd_products<128,16,16,8,4,4,6>
// @instance winograd_stay<64,128,16,8,8,3,3>
// @instance winograd_stay<128,64,16,8,8,3,3>
// @instance winograd_stay<64,128,16,8,8,4,3>
// @instance winograd_stay<64,64,16,8,8,3,6>
// @instance winograd_stay<64,64,16,8,4,4,4>
// @instance winograd_stay<32,64,16,4,8,4,8>
// @instance winograd_stay<32,32,16,4,4,4,8>
