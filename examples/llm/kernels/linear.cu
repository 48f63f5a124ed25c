// y = x W^T in bf16 on the tensor cores, for many rows of x: `mma.sync`
// multiplies what ldmatrix reads from a ring of tiles in shared memory.
// requires: sm_80
#include "linear.cuh"

// y = x W^T, or y += x W^T with ADD: x is n x inputs, W outputs x inputs, y n x
// outputs. With SWIGLU y = silu(gate) up, n x outputs / 2: of every 16 rows of
// W the first 8 belong to gates, the others to the ups of the same outputs, and
// outputs is a multiple of 16. inputs is a multiple of 8; x and W begin at
// multiples of 16 bytes, y at a multiple of 8 bytes.
//
// BM, BN: results of a block: rows of x, outputs.
// BK: depths of a slab, 32 or 64.
// WM, WN: results of a warp, multiples of 16 that divide BM and BN.
// STAGES: slabs in shared memory, at least 2.
// Out: type of y, float or bf16. ADD needs float, and excludes SWIGLU.
//
// Grid: a block for each tile of BM x BN results, in the order of linear.cuh.
// Dynamic shared memory: Tile::SHARED.
//
// A result is the sum over the depth in one accumulator, 16 at a time, from the
// first to the last, whatever the tile. So it has the same bits in every
// instance, and whatever other rows are in x.
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int WM, int WN, int STAGES, class Out,
          bool ADD, bool SWIGLU = false>
__global__ void __launch_bounds__(Tile<BM, BN, BK, WM, WN, STAGES>::THREADS,
                                  Tile<BM, BN, BK, WM, WN, STAGES>::BLOCKS)
    linear(const __nv_bfloat16* __restrict__ x,
           const __nv_bfloat16* __restrict__ W, Out* __restrict__ y, int n,
           int outputs, int inputs) {
  using T = Tile<BM, BN, BK, WM, WN, STAGES>;
  constexpr int M = T::M, N = T::N;
  static_assert(!ADD || sizeof(Out) == 4, "the residual stream is fp32");
  static_assert(!ADD || !SWIGLU, "SwiGLU is added to nothing");
  int top, left;
  T::find(blockIdx.x, n, outputs, top, left);
  typename T::Sums sum = {};
  T::add_slabs(sum, x, W, top, left, n, outputs, inputs, 0,
               (inputs + BK - 1) / BK);

  // --8<-- [start:epilogue]
  const int lane = threadIdx.x % 32;
  const int row = top + T::warp_row() + lane / 4;
  if constexpr (SWIGLU) {  // a gate and its up are in neighboring fragments
    outputs /= 2;
    const int column = (left + T::warp_column()) / 2 + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < M; ++i)
#pragma unroll
      for (int j = 0; j < N; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int r = row + i * 16 + half * 8, c = column + j * 8;
          const float* const gate = &sum[i][2 * j][2 * half];
          const float* const up = &sum[i][2 * j + 1][2 * half];
          if (r < n && c < outputs)
            store(y + (size_t)r * outputs + c, swiglu(gate[0], up[0]),
                  swiglu(gate[1], up[1]), true, true);
        }
    return;
  }
  const int column = left + T::warp_column() + lane % 4 * 2;
  const bool both = outputs % 2 == 0;  // then every row begins at a pair
#pragma unroll
  for (int i = 0; i < M; ++i) {
    const auto for_each = [&](auto what) {
#pragma unroll
      for (int j = 0; j < 2 * N; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int r = row + i * 16 + half * 8, c = column + j * 8;
          if (r < n && c < outputs)
            what(y + (size_t)r * outputs + c, &sum[i][j][2 * half],
                 c + 1 < outputs);
        }
    };
    // Everything is loaded before the first is stored: a load behind a store
    // waits for it, as both might be to the same place.
    if constexpr (ADD)
      for_each([&](const float* to, float* pair, bool second) {
        const float2 old = load(to, both, second);
        pair[0] += old.x, pair[1] += old.y;
      });
    for_each([&](Out* to, const float* pair, bool second) {
      store(to, pair[0], pair[1], both, second);
    });
  }
  // --8<-- [end:epilogue]
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance linear<128, 256, 64, 64, 64, 4, __nv_bfloat16, false>
// @instance linear<128, 128, 64, 64, 64, 3, __nv_bfloat16, false>
// @instance linear<128, 128, 32, 64, 64, 4, float, true>
// @instance linear<64, 128, 64, 32, 64, 3, float, false>
// @instance linear<64, 64, 64, 32, 32, 4, float, true>
// @instance linear<64, 64, 64, 32, 32, 8, float, true>
// @instance linear<32, 64, 64, 16, 32, 4, __nv_bfloat16, false>
// @instance linear<16, 32, 64, 16, 16, 8, float, true>
// @instance linear<16, 64, 64, 16, 16, 4, float, false>
// @instance linear<16, 32, 64, 16, 16, 4, float, true>
// @instance linear<128, 128, 64, 64, 64, 3, __nv_bfloat16, false, true>
// @instance linear<64, 64, 64, 32, 32, 4, __nv_bfloat16, false, true>
// @instance linear<32, 64, 64, 16, 32, 4, __nv_bfloat16, false, true>
// @instance linear<16, 64, 64, 16, 16, 4, __nv_bfloat16, false, true>
// @instance linear<16, 32, 64, 16, 16, 4, __nv_bfloat16, false, true>
