// Rung 8: the TMA brings tiles and takes them away; threads only turn them.
//
// Boxes of 128 bytes x ROWS rows come in, boxes of 128 bytes x COLUMNS rows go
// out, both permuted within 128 bytes (swizzle 128). Blocks walk through the
// tiles, in the order of order.cuh, with STAGES tiles on their way in and OUT
// on their way out. With STAGES = 1 and as many blocks as tiles each block has
// one tile.
//
// map_in, map_out: of in, boxes of ROWS x 128 bytes, and of out, boxes of
// COLUMNS x 128 bytes. Both begin at multiples of 16 bytes and have pitches
// that are multiples of 16 bytes; rows and columns are any numbers.
//
// ROWS, COLUMNS: of the tile; a row and a column fill 128 bytes or a multiple.
// THREADS: of a block. ROTATE: whether threads of a warp store the vectors of
// their squares in different orders, so that no banks conflict. Needs
// shared_bytes() of dynamic shared memory.
//
// requires: sm_90
// @instance transpose_tma<float,64,64,256,1,1,false>
// @instance transpose_tma<float,64,64,256,4,2,true>
// @instance transpose_tma<unsigned short,64,64,64,2,2,false>
#include "order.cuh"
#include "ptx/tma.cuh"

template <class T>
struct alignas(16) Vector {
  T at[16 / sizeof(T)];
};

// --8<-- [start:kernel]
template <class T, int ROWS, int COLUMNS, int THREADS, int STAGES, int OUT,
          bool ROTATE>
__global__ void __launch_bounds__(THREADS)
    transpose_tma(const __grid_constant__ CUtensorMap map_in,
                  const __grid_constant__ CUtensorMap map_out, int rows,
                  int columns, int group) {
  constexpr int PER = 16 / sizeof(T), SPAN = 128 / sizeof(T);
  constexpr int WIDE = COLUMNS / PER, HIGH = ROWS / PER;  // squares of the tile
  constexpr int EACH = WIDE * HIGH / THREADS;
  constexpr int BYTES = ROWS * COLUMNS * sizeof(T);
  static_assert(WIDE * HIGH % THREADS == 0, "threads share the tile evenly");
  static_assert(WIDE % 8 == 0 && HIGH % 8 == 0, "boxes are 128 bytes wide");
  extern __shared__ uint4 bytes[];
  __shared__ Barrier full[STAGES];
  // Boxes begin at multiples of 1024 bytes.
  char* const begin = reinterpret_cast<char*>(bytes) +
                      (1024 - shared_address(bytes) % 1024) % 1024;
  char* const going = begin + STAGES * BYTES;

  const int high = (rows + ROWS - 1) / ROWS;
  const int wide = (columns + COLUMNS - 1) / COLUMNS;
  const unsigned tiles = (unsigned)high * wide;
  const bool leads = threadIdx.x == 0;

  auto bring = [&](unsigned tile, int stage) {
    if (tile >= tiles) return;
    const Tile at = tile_at(tile, high, wide, group);
    arrive_and_expect(full + stage, BYTES);
#pragma unroll
    for (int b = 0; b < COLUMNS / SPAN; ++b)
      copy_box(begin + stage * BYTES + b * ROWS * 128, map_in, at.row * ROWS,
               at.column * COLUMNS + b * SPAN, full + stage);
  };

  if (leads) {
    for (int stage = 0; stage < STAGES; ++stage) init(full + stage, 1);
    fence_init();
    for (int stage = 0; stage < STAGES; ++stage)
      bring(blockIdx.x + stage * gridDim.x, stage);
  }
  __syncthreads();

  Ring<STAGES> ring;
  Ring<OUT> out;
  for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    wait(full + ring.stage, ring.parity);
    // A box of the input: ROWS rows of 8 vectors. Vector v of row r lies at
    // place v ^ r % 8.
    const auto* const from =
        reinterpret_cast<const Vector<T>(*)[8]>(begin + ring.stage * BYTES);
    Vector<T> v[EACH][PER];
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
      const int y = (threadIdx.x + e * THREADS) / WIDE;
      const int x = (threadIdx.x + e * THREADS) % WIDE;
#pragma unroll
      for (int k = 0; k < PER; ++k) {
        const int r = y * PER + k;
        v[e][k] = from[x / 8 * ROWS + r][(x ^ r) % 8];
      }
    }
    if (leads) wait_for_reads<OUT - 1>();  // the next place to go from is free
    __syncthreads();                       // and this stage has been read
    if (leads) bring(tile + STAGES * gridDim.x, ring.stage);

    auto* const to =
        reinterpret_cast<Vector<T>(*)[8]>(going + out.stage * BYTES);
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
      const int y = (threadIdx.x + e * THREADS) / WIDE;
      const int x = (threadIdx.x + e * THREADS) % WIDE;
      Vector<T> turned[PER];
#pragma unroll
      for (int k = 0; k < PER; ++k)
#pragma unroll
        for (int j = 0; j < PER; ++j) turned[k].at[j] = v[e][j].at[k];
      // Eight threads have eight x. They store rows x * PER + k, of which only
      // 8 / PER differ in their last three bits.
      const int turn = ROTATE ? x % 8 * PER / 8 : 0;
#pragma unroll
      for (int k = 0; k < PER; ++k) {
        const int other = (k + turn) % PER, r = x * PER + other;
        Vector<T> chosen = turned[k];
        if (ROTATE) {
#pragma unroll
          for (int j = 0; j < PER; ++j)
            if (j == other) chosen = turned[j];
        }
        to[y / 8 * COLUMNS + r][(y ^ r) % 8] = chosen;
      }
    }
    fence_for_tma();
    __syncthreads();
    if (leads) {
      const Tile at = tile_at(tile, high, wide, group);
#pragma unroll
      for (int b = 0; b < ROWS / SPAN; ++b)
        store_box(map_out, at.column * COLUMNS, at.row * ROWS + b * SPAN,
                  going + out.stage * BYTES + b * COLUMNS * 128);
      close_stores();
    }
    ring.advance();
    out.advance();
  }
  if (leads) wait_for_reads<0>();  // shared memory lives until then
}
// --8<-- [end:kernel]
