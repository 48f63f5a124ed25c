// C = A B in fp32, for any sizes: the final kernel (ladder/final.cu) with a
// switch for each thing that was tried on the way to it.
//
//   EXCHANGED to PARTS_FIRST  the switches
//   copy_async                starts a copy past the registers
//   commit, wait_for_all_but  groups of copies
//   Operand                   a tile of A or B on its way into shared memory
//   lane_row, lane_column     where a lane stands in its warp's part of a tile
//   read, multiply            one step of depth, of a thread
//   place_of                  the order of tiles
//   add_parts                 the sums of blocks that share a tile
//   attempt                   the kernel
//
// requires: sm_80
// expect: spills (four blocks on an SM leave 128 registers per thread)

// --8<-- [start:switches]
// What TRIED switches on.
enum : unsigned {
  EXCHANGED = 1,    // the sum of row i lies at i ^ 1, in another register bank
  LATE = 2,         // addresses move on at the end of a step
  APART = 4,        // B is copied half a step after A
  SPREAD = 8,       // one copy at each depth
  PARTS_FIRST = 16  // shared tiles come before whole ones
};
// --8<-- [end:switches]

// Start to copy WORDS words (1 or 4) from global into shared memory. Only the
// first `bytes` are read; zeros stand for the rest. Nothing happens unless
// `wanted`.
template <int WORDS>
__device__ __forceinline__ void copy_async(unsigned to, const float* from,
                                           int bytes, bool wanted) {
#define COPY(TO_WHERE, SIZE)                                            \
  asm volatile(                                                         \
      "{ .reg .pred wanted;"                                            \
      "  setp.ne.s32 wanted, %3, 0;"                                    \
      "  @wanted cp.async." TO_WHERE ".shared.global [%0], [%1], " SIZE \
      ", %2; }" ::"r"(to),                                              \
      "l"(from), "r"(bytes), "r"((int)wanted)                           \
      : "memory")
  if constexpr (WORDS == 4)
    COPY("cg", "16");
  else
    COPY("ca", "4");
#undef COPY
}

// Copies are counted in groups: one for each step of depth, even if it is
// empty.
__device__ __forceinline__ void commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Wait for this thread's own copies, all but the last GROUPS groups.
template <int GROUPS>
__device__ __forceinline__ void wait_for_all_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
}

// A tile of EXTENT rows of A (ALONG_K), or columns of B, and BK steps of depth,
// on its way into shared memory, where depth comes first: [BK][PITCH]. A block
// has THREADS threads; copies of B move VEC words.
template <int EXTENT, int BK, int THREADS, int VEC, bool ALONG_K>
struct Operand {
  static constexpr int PITCH = EXTENT + (ALONG_K ? 4 : 0);
  static constexpr int TILE = BK * PITCH;  // words
  static constexpr int WORDS = ALONG_K ? 1 : VEC, BYTES = WORDS * 4;
  static constexpr int LENGTH = ALONG_K ? BK : EXTENT,
                       LINES = ALONG_K ? EXTENT : BK;
  static constexpr int SHORTEST = VEC == 1 ? 16 : 8, WIDEST = EXTENT / WORDS;
  static constexpr int WIDE = THREADS / BK > SHORTEST ? THREADS / BK : SHORTEST;
  static constexpr int ACROSS = WIDE < WIDEST ? WIDE : WIDEST;
  // Threads on a line, and lines that the block copies at a time.
  static constexpr int LANES = ALONG_K ? 8 : ACROSS, STEP = THREADS / LANES;
  static constexpr int PER_LINE = LENGTH / (LANES * WORDS),
                       COPIES = LINES / STEP * PER_LINE;  // of a thread
  static_assert(THREADS % LANES == 0 && LINES % STEP == 0 &&
                    LENGTH % (LANES * WORDS) == 0,
                "tile");

  const float* from;  // this thread's first word of the next tile
  unsigned to;  // and where it goes in the first of the tiles in shared memory
  int ld;       // words from a line to the next
  int k;        // the depth of that word in its tile
  int room;     // rows or columns from there to the edge of the matrix

  __device__ __forceinline__ Operand(const float* matrix, int lines_apart,
                                     int first, int extent, int start,
                                     const float* tiles)
      : ld(lines_apart) {
    const int word = threadIdx.x % LANES * WORDS, line = threadIdx.x / LANES;
    const int at = ALONG_K ? line : word;
    k = ALONG_K ? word : line;
    room = extent - first - at;
    from = matrix + (ALONG_K ? (size_t)(first + at) * ld + start + k
                             : (size_t)(start + k) * ld + first + at);
    to = (unsigned)__cvta_generic_to_shared(tiles + k * PITCH + at);
  }

  // Start one of the COPIES that a thread makes of a tile; zeros stand where
  // the tile reaches past `depth`, unless it is WHOLE.
  template <bool WHOLE>
  __device__ __forceinline__ void copy_one(int number, int slot, int depth) {
    const int l = number / PER_LINE * STEP,
              w = number % PER_LINE * (LANES * WORDS);
    const bool inside = WHOLE || k + (ALONG_K ? w : l) < depth;
    copy_async<WORDS>(
        to + slot * (TILE * 4) + (ALONG_K ? w * PITCH + l : l * PITCH + w) * 4,
        from + (long long)ld * l + w, inside ? BYTES : 0,
        (ALONG_K ? l : w) < room);
  }

  template <bool WHOLE>
  __device__ __forceinline__ void copy(int slot, int depth) {
#pragma unroll
    for (int number = 0; number < COPIES; ++number)
      copy_one<WHOLE>(number, slot, depth);
  }

  __device__ __forceinline__ void advance(int depth) {
    from += ALONG_K ? depth : (long long)ld * depth;
  }
};

// A warp's lanes stand in 8 rows and 4 columns; a lane's results are patches of
// 4 x 4.
constexpr int LANE_ROWS = 8, LANE_COLUMNS = 4;

__device__ __forceinline__ int lane_row() { return threadIdx.x / 2 % 8; }
__device__ __forceinline__ int lane_column() {
  return threadIdx.x % 2 + threadIdx.x / 16 % 2 * 2;
}

// Read COUNT words of one depth, four at a time; the fours are STRIDE words
// apart.
template <int COUNT, int STRIDE>
__device__ __forceinline__ void read(float (&to)[COUNT], const float* from) {
#pragma unroll
  for (int i = 0; i < COUNT / 4; ++i)
    reinterpret_cast<float4*>(to)[i] =
        *reinterpret_cast<const float4*>(from + i * STRIDE);
}

// The products of one depth, for the TM x TN results of a thread. The sum of
// row i stands at i ^ EXCHANGE.
template <int TM, int TN, int EXCHANGE>
__device__ __forceinline__ void multiply(float (&sum)[TN][TM],
                                         const float (&a)[TM],
                                         const float (&b)[TN]) {
#pragma unroll
  for (int j = 0; j < TN; ++j) {
#pragma unroll
    for (int step = 0; step < TM; ++step) {
      const int i = j % 2 ? TM - 1 - step : step;
      sum[j][i ^ EXCHANGE] += a[i] * b[j];
    }
  }
}

// Where a tile of C lies: 8 tiles downwards, then on to the right.
__device__ __forceinline__ int2 place_of(int tile, int tile_rows,
                                         int tile_columns) {
  const int first = tile / (8 * tile_columns) * 8;
  const int rows = min(8, tile_rows - first);
  const int i = tile - first * tile_columns;
  return make_int2(i / rows, first + i % rows);
}

// Leave the sums of a part of the depth, TM x TN of each of THREADS threads.
// True in the block that is the last to do so; it has added up the sums of all
// parts, always in the same order.
template <int TM, int TN, int THREADS>
__device__ __forceinline__ bool add_parts(float (&sum)[TN][TM], int part,
                                          int parts, float* partials,
                                          unsigned* ticket) {
  __shared__ bool last;
  constexpr int VECTORS = TM * TN / 4;
  float4* const all = reinterpret_cast<float4*>(partials) + threadIdx.x;
#pragma unroll
  for (int i = 0; i < VECTORS; ++i)
    all[(part * VECTORS + i) * THREADS] = reinterpret_cast<float4*>(sum)[i];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(ticket, parts - 1) == parts - 1;
  __syncthreads();
  if (!last) return false;
  __threadfence();
#pragma unroll
  for (int j = 0; j < TN; ++j)
#pragma unroll
    for (int i = 0; i < TM; ++i) sum[j][i] = 0.0f;
  for (int p = 0; p < parts; ++p) {
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
      const float4 one = __ldcg(all + (p * VECTORS + i) * THREADS);
      float* const to = sum[i * 4 / TM] + i * 4 % TM;
      to[0] += one.x, to[1] += one.y, to[2] += one.z, to[3] += one.w;
    }
  }
  return true;
}

// A is m x k, B k x n, C m x n, row-major. Grid: a block for each of the first
// `whole` tiles, then `parts` blocks for each of the other tiles, with
// `per_part` of the depth each. Dynamic shared memory is as in ladder/final.cu.
//
//   BM to BLOCKS  as in ladder/final.cu
//   VEC           words of B that a copy moves: 1, or 4 if n is a multiple of 4
//   TRIED         the switches that are on, added up
//   EVERY         steps from one barrier to the next; STAGES is a multiple
//                 of it, and at least twice as large
template <int BM, int BN, int BK, int TM, int TN, int STAGES, int BLOCKS,
          int VEC, unsigned TRIED, int EVERY>
__global__ void __launch_bounds__(BM* BN / (TM * TN), BLOCKS)
    attempt(int m, int n, int k, float alpha, const float* __restrict__ A,
            int lda, const float* __restrict__ B, int ldb, float beta,
            float* __restrict__ C, int ldc, int whole, int parts, int per_part,
            float* __restrict__ partials, unsigned* __restrict__ tickets) {
  constexpr int THREADS = BM * BN / (TM * TN),
                WARP_COLUMNS = BN / (LANE_COLUMNS * TN);
  constexpr int EXCHANGE = TRIED & EXCHANGED ? 1 : 0;
  // Tiles that are on their way, and groups of copies that may be late.
  constexpr int AHEAD = STAGES - EVERY, MAY_WAIT = STAGES - 2 * EVERY;
  static_assert(STAGES % EVERY == 0 && MAY_WAIT >= 0, "stages");
  using OfA = Operand<BM, BK, THREADS, VEC, true>;
  using OfB = Operand<BN, BK, THREADS, VEC, false>;
  extern __shared__ float4 shared[];
  float* const tiles_a = reinterpret_cast<float*>(shared);
  float* const tiles_b = tiles_a + STAGES * OfA::TILE;

  const int block =
      TRIED & PARTS_FIRST ? (blockIdx.x + whole) % gridDim.x : blockIdx.x;
  const int rest = block - whole;
  const int index = rest < 0 ? block : whole + rest / parts,
            part = rest < 0 ? 0 : rest % parts;
  const int2 tile = place_of(index, (m + BM - 1) / BM, (n + BN - 1) / BN);
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / WARP_COLUMNS * (LANE_ROWS * TM);
  const int warp_column = warp % WARP_COLUMNS * (LANE_COLUMNS * TN);

  if (alpha == 0.0f) k = 0;
  const int start = part * per_part,
            depth = rest < 0 ? k : max(0, min(per_part, k - start));
  const int steps = (depth + BK - 1) / BK;
  OfA a_copy(A, lda, tile.y * BM, m, start, tiles_a);
  OfB b_copy(B, ldb, tile.x * BN, n, start, tiles_b);

  // The first step takes what BK leaves over.
  if (steps > 0) {
    a_copy.template copy<false>(0, depth - (steps - 1) * BK);
    b_copy.template copy<false>(0, depth - (steps - 1) * BK);
    a_copy.advance(depth - (steps - 1) * BK);
    b_copy.advance(depth - (steps - 1) * BK);
  }
  commit();
#pragma unroll
  for (int s = 1; s < AHEAD; ++s) {
    if (s < steps) {
      a_copy.template copy<true>(s, BK);
      b_copy.template copy<true>(s, BK);
      a_copy.advance(BK);
      b_copy.advance(BK);
    }
    commit();
  }
  wait_for_all_but<MAY_WAIT>();
  __syncthreads();

  const float* a_from = tiles_a + warp_row + lane_row() * 4;
  const float* b_from = tiles_b + warp_column + lane_column() * 4;
  float a[2][TM], b[2][TN], sum[TN][TM] = {};
  read<TM, LANE_ROWS * 4>(a[0], a_from);
  read<TN, LANE_COLUMNS * 4>(b[0], b_from);
  int slot = 0, free_slot = AHEAD;
  // --8<-- [start:copies]
  // COPY_A, COPY_B: the depths at which the copies of A and B start; COPIED:
  // the depth at which the last has started; MOVE: the depth at which addresses
  // move on. If copies are spread, AT_ONCE of them start at each depth from 1
  // on.
  constexpr int ALL = OfA::COPIES + OfB::COPIES,
                AT_ONCE = (ALL + BK - 4) / (BK - 3);
  constexpr int COPY_A = TRIED & APART && EVERY == 1 ? 1 : 0,
                COPY_B = !(TRIED & APART) ? 1
                         : EVERY == 1     ? BK / 2
                                          : BK / 2 + 1,
                COPIED =
                    TRIED & SPREAD ? (ALL + AT_ONCE - 1) / AT_ONCE : COPY_B,
                MOVE = TRIED & LATE ? BK - 2 : COPIED;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const bool more = step + AHEAD < steps;
#pragma unroll
    for (int kk = 0; kk < BK; ++kk) {
      if constexpr (TRIED & SPREAD) {
#pragma unroll
        for (int one = 0; one < AT_ONCE; ++one) {
          const int number = (kk - 1) * AT_ONCE + one;
          if (more && number >= 0 && number < OfA::COPIES)
            a_copy.template copy_one<true>(number, free_slot, BK);
          else if (more && number >= OfA::COPIES && number < ALL)
            b_copy.template copy_one<true>(number - OfA::COPIES, free_slot, BK);
        }
      } else {
        if (kk == COPY_A && more) {
          a_copy.template copy<true>(free_slot, BK);
          if (!(TRIED & LATE)) a_copy.advance(BK);
        }
        if (kk == COPY_B && more) {
          b_copy.template copy<true>(free_slot, BK);
          if (!(TRIED & LATE)) b_copy.advance(BK);
        }
      }
      if (kk == COPIED) {
        commit();
        free_slot = EVERY == 1               ? slot
                    : free_slot + 1 < STAGES ? free_slot + 1
                                             : 0;
      }
      if (kk == MOVE && TRIED & (LATE | SPREAD)) {
        a_copy.advance(BK);
        b_copy.advance(BK);
      }
      // --8<-- [end:copies]
      if (kk == BK - 1) {
        if (EVERY == 1 || slot % EVERY == EVERY - 1) {
          wait_for_all_but<MAY_WAIT>();
          __syncthreads();
        }
        slot = slot + 1 < STAGES ? slot + 1 : 0;
        a_from = tiles_a + slot * OfA::TILE + warp_row + lane_row() * 4;
        b_from = tiles_b + slot * OfB::TILE + warp_column + lane_column() * 4;
      }
      const int next = (kk + 1) % BK, turn = (kk + 1) % 2;
      read<TM, LANE_ROWS * 4>(a[turn], a_from + next * OfA::PITCH);
      read<TN, LANE_COLUMNS * 4>(b[turn], b_from + next * OfB::PITCH);
      multiply<TM, TN, EXCHANGE>(sum, a[kk % 2], b[kk % 2]);
    }
  }

  if (rest >= 0 && parts > 1) {
    float* const own = partials + (size_t)(index - whole) * parts * (BM * BN);
    if (!add_parts<TM, TN, THREADS>(sum, part, parts, own,
                                    tickets + (index - whole)))
      return;
  }

  // Results go through shared memory, so that a warp stores whole sectors of C.
  constexpr int HIGH = LANE_ROWS * 4, WIDE = LANE_COLUMNS * TN,
                PITCH = HIGH + 4;
  float* const columns = tiles_a + warp * (WIDE * PITCH);
  __syncthreads();  // other warps may still read their last tile
#pragma unroll
  for (int i = 0; i < TM; i += 4) {
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      const int column = j / 4 * (LANE_COLUMNS * 4) + lane_column() * 4 + j % 4;
      *reinterpret_cast<float4*>(columns + column * PITCH + lane_row() * 4) =
          reinterpret_cast<float4&>(sum[j][i]);
    }
    __syncwarp();
    const int lane = threadIdx.x % 32;
    const int top = tile.y * BM + warp_row + i / 4 * HIGH,
              left = tile.x * BN + warp_column;
#pragma unroll 4
    for (int patch = 0; patch < WIDE; ++patch) {
      const int y = patch / (WIDE / 8) * 4 + lane / 8,
                x = patch % (WIDE / 8) * 8 + lane % 8;
      if (top + y < m && left + x < n) {
        const float product = alpha * columns[x * PITCH + (y ^ EXCHANGE)];
        float* const c = C + (size_t)(top + y) * ldc + left + x;
        *c = beta == 0.0f ? product : product + beta * *c;
      }
    }
    __syncwarp();
  }
}

// Instances that are compiled by the tests:
// @instance attempt<64,128,16,8,8,3,3,4,7,1>
// @instance attempt<64,128,16,8,8,3,3,1,0,1>
// @instance attempt<64,128,16,8,8,4,3,4,31,2>
// @instance attempt<128,256,16,8,16,4,1,4,1,1>
