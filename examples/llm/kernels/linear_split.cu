// y = x W^T in bf16 on the tensor cores where tiles are few and deep: the
// blocks of a cluster share the depth of a tile, and then its results.
// requires: sm_90
#include "split.cuh"

// As `linear` of linear.cu, with all of its parameters; but a cluster of SPLIT
// blocks, at most 8, computes each tile. Block `rank` of the cluster multiplies
// its share of the slabs. Then all blocks put their sums into shared memory,
// and each block adds up and stores its share of the results. Grid: SPLIT
// blocks for each tile.
//
// The bits of a result depend on inputs, SPLIT and BK, since these say which
// depths are added up first, and on nothing else: no other part of the tile, no
// other row of x.
// --8<-- [start:kernel]
template <int SPLIT, int BM, int BN, int BK, int WM, int WN, int STAGES,
          class Out, bool ADD, bool SWIGLU = false>
__global__ void __cluster_dims__(SPLIT, 1, 1)
    __launch_bounds__(Tile<BM, BN, BK, WM, WN, STAGES>::THREADS,
                      Tile<BM, BN, BK, WM, WN, STAGES>::BLOCKS)
        linear_split(const __nv_bfloat16* __restrict__ x,
                     const __nv_bfloat16* __restrict__ W, Out* __restrict__ y,
                     int n, int outputs, int inputs) {
  using T = Tile<BM, BN, BK, WM, WN, STAGES>;
  static_assert(!ADD || sizeof(Out) == 4, "the residual stream is fp32");
  static_assert(!ADD || !SWIGLU, "SwiGLU is added to nothing");
  // Blocks with neighboring numbers are a cluster.
  const int rank = blockIdx.x % SPLIT;
  int top, left;
  T::find(blockIdx.x / SPLIT, n, outputs, top, left);
  const int slabs = (inputs + BK - 1) / BK;
  const int first = slabs * rank / SPLIT;
  typename T::Sums sum = {};
  T::add_slabs(sum, x, W, top, left, n, outputs, inputs, first,
               slabs * (rank + 1) / SPLIT - first);
  const Parts<T, SPLIT> parts;
  parts.put(sum);

  // --8<-- [start:share]
  // Pairs of results are dealt out to the blocks, as many at a time as they
  // have threads. for_each calls what(i, row, column, to, second) for this
  // thread's i-th pair: its place in the tile and in y, and whether y has its
  // second result.
  constexpr int WIDTH = SWIGLU ? BN / 4 : BN / 2, PAIRS = BM * WIDTH;
  constexpr int DEALT = SPLIT * T::THREADS;
  constexpr int MOST = (PAIRS + DEALT - 1) / DEALT;
  static_assert(MOST <= 16, "registers for what is added to");
  if (SWIGLU) outputs /= 2, left /= 2;
  const bool both = outputs % 2 == 0;  // then every row begins at a pair
  const auto for_each = [&](auto what) {
#pragma unroll
    for (int i = 0; i < MOST; ++i) {
      const int pair = i * DEALT + rank * T::THREADS + threadIdx.x;
      const int row = pair / WIDTH, column = pair % WIDTH * 2;
      const int r = top + row, c = left + column;
      if (pair < PAIRS && r < n && c < outputs)
        what(i, row, column, y + (size_t)r * outputs + c, c + 1 < outputs);
    }
  };
  // --8<-- [end:share]

  // --8<-- [start:exchange]
  float2 result[MOST] = {};
  arrive();
  // What y holds is loaded while this block waits for the others.
  if constexpr (ADD)
    for_each([&](int i, int, int, const float* to, bool second) {
      result[i] = load(to, both, second);
    });
  wait_for_cluster();
  for_each([&](int i, int row, int column, const Out*, bool) {
    if constexpr (SWIGLU) {
      const int of_gate = column / 8 * 16 + column % 8;
      const float2 gate = parts.added(row, of_gate);
      const float2 up = parts.added(row, of_gate + 8);
      result[i] = make_float2(swiglu(gate.x, up.x), swiglu(gate.y, up.y));
    } else {
      const float2 sum = parts.added(row, column);
      if (ADD)
        result[i].x += sum.x, result[i].y += sum.y;
      else
        result[i] = sum;
    }
  });
  arrive();
  for_each([&](int i, int, int, Out* to, bool second) {
    store(to, result[i].x, result[i].y, both, second);
  });
  // No block ends while another reads from its shared memory.
  wait_for_cluster();
  // --8<-- [end:exchange]
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance linear_split<2, 64, 64, 64, 32, 32, 4, __nv_bfloat16, false>
// @instance linear_split<2, 64, 64, 64, 32, 32, 4, __nv_bfloat16, false, true>
// @instance linear_split<3, 64, 64, 64, 32, 32, 4, float, true>
// @instance linear_split<4, 64, 64, 64, 32, 32, 4, float, true>
// @instance linear_split<4, 16, 32, 64, 16, 16, 4, float, true>
// @instance linear_split<8, 16, 32, 64, 16, 16, 4, float, true>
// @instance linear_split<8, 16, 32, 64, 16, 16, 4, __nv_bfloat16, false, true>
// @instance linear_split<2, 64, 128, 64, 32, 64, 3, float, true>
