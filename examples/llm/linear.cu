// y = x W^T in bf16 on the tensor cores, for many rows of x: mma.sync, fed by
// ldmatrix from a ring of tiles in shared memory.
// requires: sm_80
// @instance linear<128, 256, 64, 64, 64, 4, __nv_bfloat16, false>
// @instance linear<128, 128, 64, 64, 64, 3, __nv_bfloat16, false>
// @instance linear<128, 128, 32, 64, 64, 4, float, true>
// @instance linear<64, 128, 64, 32, 64, 3, float, false>
// @instance linear<64, 64, 64, 32, 32, 4, float, true>
// @instance linear<32, 64, 64, 16, 32, 4, __nv_bfloat16, false>
// @instance linear<16, 64, 64, 16, 16, 4, float, false>
// @instance linear<16, 32, 64, 16, 16, 4, float, true>
// @instance linear<128, 128, 64, 64, 64, 3, __nv_bfloat16, false, true>
// @instance linear<64, 64, 64, 32, 32, 4, __nv_bfloat16, false, true>
// @instance linear<32, 64, 64, 16, 32, 4, __nv_bfloat16, false, true>
// @instance linear<16, 64, 64, 16, 16, 4, __nv_bfloat16, false, true>
// @instance linear<16, 32, 64, 16, 16, 4, __nv_bfloat16, false, true>
#include "mma.cuh"
#include "overlap.cuh"

// --8<-- [start:swizzle]
// Tiles in shared memory have rows of BK elements, which are CHUNKS pieces of
// 16 bytes. The 32 banks hold eight such pieces side by side. ldmatrix reads
// the same piece of eight neighboring rows. With BK = 64 a row fills all banks
// once: piece c of every row would lie in the same four banks, and the eight
// reads would take turns. So row r keeps its piece c at c XOR r % 8: eight
// rows, eight places. With BK = 32 two rows fill the banks, and the XOR changes
// every second row.
template <int BK>
__device__ __forceinline__ int place(int row, int chunk) {
  constexpr int CHUNKS = BK / 8, ROWS = 8 / CHUNKS;  // that fill the banks
  static_assert(CHUNKS == 4 || CHUNKS == 8, "rows of 64 or 128 bytes");
  return row * CHUNKS + (chunk ^ (row / ROWS % CHUNKS));
}
// --8<-- [end:swizzle]

// --8<-- [start:copy]
// This thread's part of the copy of ROWS x BK elements from a matrix into a
// tile. A row's pieces are copied by neighboring threads. Zeros stand for what
// lies beyond the last row or behind the depth: they add nothing.
template <int ROWS, int BK, int THREADS>
__device__ __forceinline__ void copy_tile(
    unsigned tile, const __nv_bfloat16* __restrict__ matrix, int first,
    int rows, int depth, int inputs) {
  constexpr int CHUNKS = BK / 8, STEP = THREADS / CHUNKS;
  static_assert(ROWS % STEP == 0 && STEP % 8 == 0, "shared evenly");
  const int chunk = threadIdx.x % CHUNKS, row = threadIdx.x / CHUNKS;
  const int k = depth + chunk * 8;
  const __nv_bfloat16* from = matrix + (size_t)(first + row) * inputs + k;
  // STEP rows further on the XOR is the same again.
  const unsigned to = tile + place<BK>(row, chunk) * 16;
#pragma unroll
  for (int r = 0; r < ROWS; r += STEP) {
    const bool inside = first + row + r < rows && k < inputs;
    copy16(to + r * BK * 2, from + (size_t)r * inputs, inside ? 16 : 0);
  }
}
// --8<-- [end:copy]

// --8<-- [start:fragment]
// Where this lane's row lies, in bytes, when a warp loads 16 x 16 elements with
// one ldmatrix; matrix i has the rows of lanes 8i to 8i + 7. Of x the matrices
// 0 and 1 are rows 0 to 7 and 8 to 15, and 2 and 3 the same rows 8 elements
// further on: the order of a[0] to a[3] in an mma. Of W the rows are outputs,
// columns of B, and B is two neighboring registers: matrices 0 and 1 are both
// halves of outputs 0 to 7, matrices 2 and 3 those of outputs 8 to 15.
template <int BK>
__device__ __forceinline__ unsigned place_in_x(int row) {
  const int lane = threadIdx.x % 32;
  return place<BK>(row + lane % 16, lane / 16) * 16;
}
template <int BK>
__device__ __forceinline__ unsigned place_in_w(int row) {
  const int lane = threadIdx.x % 32;
  return place<BK>(row + lane % 8 + lane / 16 * 8, lane / 8 % 2) * 16;
}
// --8<-- [end:fragment]

// --8<-- [start:store]
// Two neighboring results of a row; `both`: in one go, where the address allows
// it. ADD: to what is there, the residual stream.
template <bool ADD>
__device__ __forceinline__ void store(float* to, float first, float second,
                                      bool both, bool has_second) {
  if (both) {
    float2* const pair = reinterpret_cast<float2*>(to);
    const float2 old = ADD ? *pair : make_float2(0.0f, 0.0f);
    *pair = make_float2(old.x + first, old.y + second);
  } else {
    to[0] = ADD ? to[0] + first : first;
    if (has_second) to[1] = ADD ? to[1] + second : second;
  }
}
template <bool ADD>
__device__ __forceinline__ void store(__nv_bfloat16* to, float first,
                                      float second, bool both,
                                      bool has_second) {
  static_assert(!ADD, "the residual stream is fp32");
  if (both) {
    *reinterpret_cast<__nv_bfloat162*>(to) =
        __floats2bfloat162_rn(first, second);
  } else {
    to[0] = __float2bfloat16(first);
    if (has_second) to[1] = __float2bfloat16(second);
  }
}
// --8<-- [end:store]

// --8<-- [start:swiglu]
// silu(gate) up, in fp32; silu(x) = x / (1 + e^-x). e^-gate may be infinite:
// gate / inf is 0.
__device__ __forceinline__ float swiglu(float gate, float up) {
  return __fdividef(gate, 1.0f + expf(-gate)) * up;
}
// --8<-- [end:swiglu]

// y = x W^T, or y += x W^T with ADD: x is n x inputs, W outputs x inputs, y
// n x outputs. With SWIGLU y = silu(gate) up, n x outputs / 2, where of every
// 16 rows of W the first 8 belong to gates, the others to the ups of the same
// outputs; outputs is a multiple of 16 then. inputs: a multiple of 8; x and W
// begin at multiples of 16 bytes, y at one of 8 bytes. Grid: a block for each
// tile of BM x BN results. A block walks along the depth in slabs of BK, STAGES
// - 1 of them on their way while one is multiplied; a warp has WM x WN of its
// results. Dynamic shared memory: STAGES * (BM + BN) * BK elements.
//
// A result is the sum over the depth in one accumulator, 16 at a time, from the
// first to the last, whatever the tile. So it has the same bits in every
// instance, and whatever other rows are in x.
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int WM, int WN, int STAGES, class Out,
          bool ADD, bool SWIGLU = false>
__global__ void
// The large tile fills the registers of an SM alone; of others two fit.
__launch_bounds__(BM / WM * (BN / WN) * 32, BM* BN > 128 * 128 ? 1 : 2)
    linear(const __nv_bfloat16* __restrict__ x,
           const __nv_bfloat16* __restrict__ W, Out* __restrict__ y, int n,
           int outputs, int inputs) {
  constexpr int THREADS = BM / WM * (BN / WN) * 32;
  constexpr int OF_X = BM * BK * 2, STAGE = OF_X + BN * BK * 2;  // bytes
  constexpr int M = WM / 16, N = WN / 16;  // fragments of a warp
  static_assert(BM % WM == 0 && BN % WN == 0 && BK % 32 == 0, "whole warps");
  extern __shared__ __align__(128) unsigned char shared[];
  const unsigned tiles = shared_address(shared);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp % (BM / WM) * WM,
            warp_column = warp / (BM / WM) * WN;

  // --8<-- [start:order]
  // Tiles are numbered down GROUP rows of tiles, then on to the right: blocks
  // that run at the same time share rows of x and of W in the L2 cache.
  constexpr int GROUP = 8;
  const int tile_rows = (n + BM - 1) / BM,
            tile_columns = (outputs + BN - 1) / BN;
  const int first = blockIdx.x / (GROUP * tile_columns) * GROUP;
  const int in_group = blockIdx.x - first * tile_columns;
  const int height = min(GROUP, tile_rows - first);
  const int top = (first + in_group % height) * BM,
            left = in_group / height * BN;
  // --8<-- [end:order]

  const int slabs = (inputs + BK - 1) / BK;
  const auto copy_w = [&](int slab) {
    if (slab < slabs)
      copy_tile<BN, BK, THREADS>(tiles + slab % STAGES * STAGE + OF_X, W, left,
                                 outputs, slab * BK, inputs);
  };
  const auto copy_x = [&](int slab) {
    if (slab < slabs)
      copy_tile<BM, BK, THREADS>(tiles + slab % STAGES * STAGE, x, top, n,
                                 slab * BK, inputs);
    commit();
  };

  // --8<-- [start:multiply]
  // Two sets of fragments: one is loaded while the other is multiplied.
  unsigned a[2][M][4], b[2][N][4];
  float sum[M][2 * N][4] = {};
  const unsigned in_x = place_in_x<BK>(warp_row);
  const unsigned in_w = OF_X + place_in_w<BK>(warp_column);
  const auto load = [&](int set, int slab, int k) {
    const unsigned stage = tiles + slab % STAGES * STAGE;
    // 16 rows further on the swizzle is the same again. And k, a multiple of
    // 16, is two pieces or more: it changes bits of the piece's number that
    // are 0 in `place_in`, so that XOR adds it before the swizzle.
#pragma unroll
    for (int i = 0; i < M; ++i)
      ldmatrix(a[set][i], stage + (in_x ^ k * 2) + i * 16 * BK * 2);
#pragma unroll
    for (int j = 0; j < N; ++j)
      ldmatrix(b[set][j], stage + (in_w ^ k * 2) + j * 16 * BK * 2);
  };
  const auto multiply = [&](int set) {
#pragma unroll
    for (int i = 0; i < M; ++i)
#pragma unroll
      for (int j = 0; j < N; ++j) {
        mma(sum[i][2 * j], a[set][i], b[set][j][0], b[set][j][1]);
        mma(sum[i][2 * j + 1], a[set][i], b[set][j][2], b[set][j][3]);
      }
  };
  // --8<-- [end:multiply]

  // --8<-- [start:loop]
  begin_next();
#pragma unroll
  for (int slab = 0; slab < STAGES - 1; ++slab) copy_w(slab);
  wait_for_previous();  // x is its work, W is not
#pragma unroll
  for (int slab = 0; slab < STAGES - 1; ++slab) copy_x(slab);
  wait_for_all_but<STAGES - 2>();
  __syncthreads();
  load(0, 0, 0);
  for (int slab = 0; slab < slabs; ++slab) {
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
      const int set = k / 16 % 2;
      if (k + 16 < BK) {
        load(set ^ 1, slab, k + 16);
      } else {
        // On to the next slab: it has arrived, for all threads, and nobody
        // needs this one anymore. (Behind the last slab stale elements are
        // loaded, and not multiplied.)
        wait_for_all_but<STAGES - 2>();
        __syncthreads();
        load(set ^ 1, slab + 1, 0);
      }
      // Over the slab before this one, which all threads have left.
      if (k == 0) copy_w(slab + STAGES - 1), copy_x(slab + STAGES - 1);
      multiply(set);
    }
  }
  // --8<-- [end:loop]

  // --8<-- [start:epilogue]
  if constexpr (SWIGLU) {  // a gate and its up are in neighboring fragments
    outputs /= 2;
    const int at = (left + warp_column) / 2 + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < M; ++i)
#pragma unroll
      for (int j = 0; j < N; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int r = top + warp_row + lane / 4 + i * 16 + half * 8;
          const int c = at + j * 8;
          const float* const gate = &sum[i][2 * j][2 * half];
          const float* const up = &sum[i][2 * j + 1][2 * half];
          if (r < n && c < outputs)
            store<false>(y + (size_t)r * outputs + c, swiglu(gate[0], up[0]),
                         swiglu(gate[1], up[1]), true, true);
        }
    return;
  }
  const int row = top + warp_row + lane / 4;
  const int column = left + warp_column + lane % 4 * 2;
  const bool both = outputs % 2 == 0;  // then every row begins at a pair
#pragma unroll
  for (int i = 0; i < M; ++i)
#pragma unroll
    for (int j = 0; j < 2 * N; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = row + i * 16 + half * 8, c = column + j * 8;
        if (r < n && c < outputs)
          store<ADD>(y + (size_t)r * outputs + c, sum[i][j][2 * half],
                     sum[i][j][2 * half + 1], both, c + 1 < outputs);
      }
  // --8<-- [end:epilogue]
}
// --8<-- [end:kernel]
