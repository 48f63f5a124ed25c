// What linear.cu, linear_qkv.cu and linear_split.cu share: the product of a
// block's tile, and how results are stored.
//
//   place                    where a piece of 16 bytes lies: the swizzle
//   copy_tile                starts to copy a slab of x or W
//   place_in_x, place_in_w   where a lane reads for ldmatrix
//   Tile                     sizes and order of tiles; add_slabs multiplies
//   store, load, swiglu      what happens to two neighboring results
#pragma once
#include "ptx/mma.cuh"
#include "ptx/overlap.cuh"

// --8<-- [start:swizzle]
// A tile in shared memory has rows of BK elements, which are CHUNKS pieces of
// 16 bytes. The 32 banks hold eight such pieces side by side. ldmatrix reads
// the same piece of eight neighboring rows. With BK = 64 a row fills all banks
// once: piece c of every row would lie in the same four banks, and the eight
// reads would take turns. So row r keeps its piece c at c XOR r % 8: eight
// rows, eight places. With BK = 32 two rows fill the banks, and the XOR changes
// every second row.
template <int BK>
__device__ __forceinline__ int place(int row, int chunk) {
  constexpr int CHUNKS = BK / 8, ROWS = 8 / CHUNKS;  // ROWS fill the banks
  static_assert(CHUNKS == 4 || CHUNKS == 8, "rows of 64 or 128 bytes");
  return row * CHUNKS + (chunk ^ (row / ROWS % CHUNKS));
}
// --8<-- [end:swizzle]

// --8<-- [start:copy]
// This thread's part of the copy of ROWS x BK elements from a matrix into a
// tile. A row's pieces are copied by neighboring threads. Zeros stand for what
// lies beyond the last row or behind the depth: they add nothing. THREADS: of
// the block.
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
// Where this lane's row lies, in bytes, when a warp loads 16 x 16 elements by
// one ldmatrix; lanes 8i to 8i + 7 have the rows of matrix i. Of x matrices 0
// and 1 are rows 0 to 7 and 8 to 15, and 2 and 3 the same rows 8 elements
// further on: the order of a[0] to a[3] in an mma. Of W a row is an output, a
// column of B, and B is two neighboring registers: matrices 0 and 1 are both
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

// A block's tile of BM x BN results. The block walks along the depth in slabs
// of
// BK: STAGES - 1 of them are copied while one is multiplied. A warp has WM x WN
//   of the results.
template <int BM, int BN, int BK, int WM, int WN, int STAGES>
struct Tile {
  static_assert(BM % WM == 0 && BN % WN == 0 && BK % 32 == 0, "whole warps");
  static constexpr int ROWS = BM, COLUMNS = BN;
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
  // The large tile fills the registers of an SM alone; of other tiles two fit.
  static constexpr int BLOCKS = BM * BN > 128 * 128 ? 1 : 2;
  // Bytes: where W begins in a stage, behind x; a stage; dynamic shared memory.
  static constexpr int OF_X = BM * BK * 2, STAGE = OF_X + BN * BK * 2;
  static constexpr int SHARED = STAGES * STAGE;
  static constexpr int M = WM / 16, N = WN / 16;  // a warp's fragments
  using Sums = float[M][2 * N][4];

  // Where the results of this thread's warp begin in the tile.
  static __device__ __forceinline__ int warp_row() {
    return threadIdx.x / 32 % (BM / WM) * WM;
  }
  static __device__ __forceinline__ int warp_column() {
    return threadIdx.x / 32 / (BM / WM) * WN;
  }

  // --8<-- [start:order]
  // Tiles are numbered down GROUP rows of tiles, then on to the right: blocks
  // that run at the same time share rows of x and of W in the L2 cache.
  static __device__ __forceinline__ void find(int number, int n, int outputs,
                                              int& top, int& left) {
    constexpr int GROUP = 8;
    const int tile_rows = (n + BM - 1) / BM,
              tile_columns = (outputs + BN - 1) / BN;
    const int first = number / (GROUP * tile_columns) * GROUP;
    const int in_group = number - first * tile_columns;
    const int height = min(GROUP, tile_rows - first);
    top = (first + in_group % height) * BM;
    left = in_group / height * BN;
  }
  // --8<-- [end:order]

  static __device__ __forceinline__ void add_slabs(
      Sums& sum, const __nv_bfloat16* __restrict__ x,
      const __nv_bfloat16* __restrict__ W, int top, int left, int n,
      int outputs, int inputs, int first, int slabs);
};

// Adds to `sum` the products of `slabs` slabs, from slab `first` on, 16 depths
// at a time and in their order. The tile's results begin at row `top` and
// column `left`. Also lets the next kernel begin, and waits for the kernel
// before.
template <int BM, int BN, int BK, int WM, int WN, int STAGES>
__device__ __forceinline__ void Tile<BM, BN, BK, WM, WN, STAGES>::add_slabs(
    Sums& sum, const __nv_bfloat16* __restrict__ x,
    const __nv_bfloat16* __restrict__ W, int top, int left, int n, int outputs,
    int inputs, int first, int slabs) {
  extern __shared__ __align__(128) unsigned char shared[];
  const unsigned tiles = shared_address(shared);
  const auto copy_w = [&](int slab) {
    if (slab < slabs)
      copy_tile<BN, BK, THREADS>(tiles + slab % STAGES * STAGE + OF_X, W, left,
                                 outputs, (first + slab) * BK, inputs);
  };
  const auto copy_x = [&](int slab) {
    if (slab < slabs)
      copy_tile<BM, BK, THREADS>(tiles + slab % STAGES * STAGE, x, top, n,
                                 (first + slab) * BK, inputs);
    commit();
  };

  // --8<-- [start:multiply]
  // Two sets of fragments: one is loaded while the other is multiplied.
  unsigned a[2][M][4], b[2][N][4];
  const unsigned in_x = place_in_x<BK>(warp_row());
  const unsigned in_w = OF_X + place_in_w<BK>(warp_column());
  const auto load = [&](int set, int slab, int k) {
    const unsigned stage = tiles + slab % STAGES * STAGE;
    // The swizzle is the same again 16 rows further on. k is a multiple of 16,
    // two pieces or more: it changes bits of the piece's number that are 0 in
    // `place_in`, so the XOR adds k before the swizzle.
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
  // The next kernel's blocks copy W as soon as they begin. Where rows are few,
  // SMs and memory have room for that all the time. Otherwise blocks that begin
  // early take room and bandwidth from blocks that still multiply.
  const bool early = n <= 32;
  if (early) begin_next();
#pragma unroll
  for (int slab = 0; slab < STAGES - 1; ++slab) copy_w(slab);
  wait_for_previous();  // it writes x, not W
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
        // The next slab has arrived for all threads, and no thread needs this
        // one anymore. (Behind the last slab a stale one is loaded, and not
        // multiplied.)
        wait_for_all_but<STAGES - 2>();
        __syncthreads();
        load(set ^ 1, slab + 1, 0);
      }
      // These copies overwrite the slab before this one: all threads have left
      // it.
      if (k == 0) copy_w(slab + STAGES - 1), copy_x(slab + STAGES - 1);
      multiply(set);
    }
  }
  if (!early) begin_next();
  // --8<-- [end:loop]
}

// --8<-- [start:store]
// Stores two neighboring results of a row, or the one that exists. both: in one
// store, which the address allows where every row begins at a pair.
__device__ __forceinline__ void store(float* to, float first, float second,
                                      bool both, bool has_second) {
  if (both) {
    *reinterpret_cast<float2*>(to) = make_float2(first, second);
  } else {
    to[0] = first;
    if (has_second) to[1] = second;
  }
}
__device__ __forceinline__ void store(__nv_bfloat16* to, float first,
                                      float second, bool both,
                                      bool has_second) {
  if (both) {
    *reinterpret_cast<__nv_bfloat162*>(to) =
        __floats2bfloat162_rn(first, second);
  } else {
    to[0] = __float2bfloat16(first);
    if (has_second) to[1] = __float2bfloat16(second);
  }
}

// Loads what y holds before a product is added: the residual stream, in fp32.
__device__ __forceinline__ float2 load(const float* from, bool both,
                                       bool has_second) {
  if (both) return *reinterpret_cast<const float2*>(from);
  return make_float2(from[0], has_second ? from[1] : 0.0f);
}
// --8<-- [end:store]

// --8<-- [start:swiglu]
// silu(gate) up in fp32, where silu(x) = x / (1 + e^-x). e^-gate may be
// infinite: gate / inf is 0.
__device__ __forceinline__ float swiglu(float gate, float up) {
  return __fdividef(gate, 1.0f + expf(-gate)) * up;
}
// --8<-- [end:swiglu]
