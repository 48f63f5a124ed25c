// C = alpha op(A) op(B) + beta C in fp32, for any sizes, leading dimensions and
// transpositions.
//
//   copy_async                starts a copy past the registers
//   commit, wait_for_all_but  groups of copies
//   Operand                   a tile of A or B on its way into shared memory
//   lane_row, lane_column     where a lane stands in its warp's part of a tile
//   read, multiply            one step of depth, of a thread
//   place_of                  the order of tiles
//   last_to_arrive            whether all blocks that share a tile have come
//   add_parts, tickets_of     the sums of these blocks
//   number_again              the number of the block, read anew
//   sgemm                     the kernel
//
// requires: sm_80
// @rung 90 kernel=sgemm<64,128,16,8,8,3,3,4,false,false>

// Start to copy WORDS words (1, 2 or 4) from global into shared memory, past
// the registers. Only the first `bytes` are read; zeros stand for the rest.
// Nothing happens unless `wanted`, which is a predicate on the instruction, not
// a branch around it. The copies go through the L1 cache (`ca`). If they went
// past it, as copies of 16 bytes can (`cg`), the sectors of L2 would be counted
// twice, once for each lane with a half of them.
// --8<-- [start:copy]
template <int WORDS>
__device__ __forceinline__ void copy_async(unsigned to, const float* from,
                                           int bytes, bool wanted) {
  asm volatile(
      "{ .reg .pred wanted;"
      "  setp.ne.s32 wanted, %3, 0;"
      "  @wanted cp.async.ca.shared.global [%0], [%1], %4, %2; }" ::"r"(to),
      "l"(from), "r"(bytes), "r"((int)wanted), "n"(WORDS * 4)
      : "memory");
}
// --8<-- [end:copy]

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

// --8<-- [start:layout]
// One operand on its way into shared memory: a tile of EXTENT rows of op(A), or
// columns of op(B), and BK steps of depth. In shared memory depth comes first,
// [BK][PITCH], because a thread reads neighboring rows or columns of one depth,
// four in a load.
//
// In global memory the words of a line lie side by side: a line runs along the
// depth (ALONG_K: A, and B transposed) or across it (B, and A transposed).
// Across, lines are copied as they are, VEC words at a time. Along, words are
// copied one by one, each to its place in the turned tile; then a warp copies 8
// depths of 4 lines, and 4 words of padding send these words to 32 different
// banks. THREADS: of the block.
template <int EXTENT, int BK, int THREADS, int VEC, bool ALONG_K>
struct Operand {
  static constexpr int PITCH = EXTENT + (ALONG_K ? 4 : 0);
  static constexpr int TILE = BK * PITCH;  // words
  static constexpr int WORDS = ALONG_K ? 1 : VEC, BYTES = WORDS * 4;
  // --8<-- [end:layout]
  static constexpr int LENGTH = ALONG_K ? BK : EXTENT,
                       LINES = ALONG_K ? EXTENT : BK;
  static constexpr int SHORTEST = VEC == 4 ? 8 : 16, WIDEST = EXTENT / WORDS;
  static constexpr int SPREAD =
      THREADS / BK > SHORTEST ? THREADS / BK : SHORTEST;
  // Threads on a line, and lines that the block copies at a time.
  static constexpr int ACROSS = SPREAD < WIDEST ? SPREAD : WIDEST;
  static constexpr int LANES = ALONG_K ? 8 : ACROSS, STEP = THREADS / LANES;
  // There are many copies across if each moves a single word; then a branch
  // around them costs fewer registers than a predicate on each.
  static constexpr bool BRANCH = !ALONG_K && WORDS == 1;
  static_assert(THREADS % LANES == 0 && LINES % STEP == 0 &&
                    LENGTH % (LANES * WORDS) == 0,
                "tile");

  const float* from;  // this thread's first word of the next tile
  unsigned to;  // and where it goes in the first of the tiles in shared memory
  int ld;       // words from a line to the next
  int k;        // the depth of that word in its tile
  int room;     // rows or columns from there to the edge of the matrix

  // The tile starts at row or column `first` of `extent`, and at depth `start`.
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

  // --8<-- [start:operand]
  // Start to copy the next tile into a slot, unless `more` says that there is
  // none. Zeros stand where the tile reaches past `depth`; a WHOLE tile does
  // not. Rows and columns beyond the matrix are left out: what stands there
  // goes into results that no thread stores.
  template <bool WHOLE>
  __device__ __forceinline__ void copy(int slot, int depth, bool more = true) {
    if (BRANCH && !more) return;
    const unsigned base = to + slot * (TILE * 4);
#pragma unroll
    for (int l = 0; l < LINES; l += STEP) {
#pragma unroll
      for (int w = 0; w < LENGTH; w += LANES * WORDS) {
        const bool inside = WHOLE || k + (ALONG_K ? w : l) < depth;
        copy_async<WORDS>(base + (ALONG_K ? w * PITCH + l : l * PITCH + w) * 4,
                          from + (long long)ld * l + w, inside ? BYTES : 0,
                          more && (ALONG_K ? l : w) < room);
      }
    }
  }

  // On to the next tile. This does not follow the copies at once: until a copy
  // has read its address, the registers of the address are not free.
  __device__ __forceinline__ void advance(int depth) {
    from += ALONG_K ? depth : (long long)ld * depth;
  }
  // --8<-- [end:operand]
};

// --8<-- [start:lanes]
// A warp's lanes stand ROWS x 32 / ROWS over its part of the tile: 8 x 4, or
// 4 x 8 in tiles that are low. A lane's TM x TN results are 4 x 4 patches, a
// whole warp apart, so that lanes side by side read consecutive pieces of 16
// bytes: all 32 banks in one go. Lanes are numbered so that any two neighbors
// need the same words of A or the same words of B. The hardware serves 8 lanes
// of a 16-byte load at a time, and 16 where they come in such pairs.
template <int ROWS>
__device__ __forceinline__ int lane_row() {
  return threadIdx.x / 2 % ROWS;
}
template <int ROWS>
__device__ __forceinline__ int lane_column() {
  return threadIdx.x % 2 + threadIdx.x % 32 / (2 * ROWS) * 2;
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
// --8<-- [end:lanes]

// The products of one depth, down one column and up the next: from an FMA to
// the next, the turns included, one of the two factors stays, and the hardware
// keeps it at hand (`.reuse`). The hardware must still fetch the other factor
// and the sum. The registers lie in two banks, even and odd ones. Of two
// versions of the same instructions, the one whose FMAs fetch two words of one
// bank more often was the slower one. A load of 16 bytes puts a[i] into an even
// register for even i. So the sum of row i stands at i ^ 1; the stores at the
// end, which take four sums at a time, make the compiler keep it there.
// --8<-- [start:fma]
template <int TM, int TN>
__device__ __forceinline__ void multiply(float (&sum)[TN][TM],
                                         const float (&a)[TM],
                                         const float (&b)[TN]) {
#pragma unroll
  for (int j = 0; j < TN; ++j) {
#pragma unroll
    for (int step = 0; step < TM; ++step) {
      const int i = j % 2 ? TM - 1 - step : step;
      sum[j][i ^ 1] += a[i] * b[j];
    }
  }
}
// --8<-- [end:fma]

// Where a tile of C lies: GROUP tiles downwards, then on to the right. Blocks
// that run at the same time then share rows of A and columns of B, and find
// them in the L2 cache.
// --8<-- [start:order]
__device__ __forceinline__ int2 place_of(int tile, int tile_rows,
                                         int tile_columns) {
  constexpr int GROUP = 16;
  const int first = tile / (GROUP * tile_columns) * GROUP;
  const int rows = min(GROUP, tile_rows - first);
  const int i = tile - first * tile_columns;
  return make_int2(i / rows, first + i % rows);
}
// --8<-- [end:order]

// Count one more block that has arrived. True in the last of `count` blocks,
// which leaves the ticket at 0. One thread calls this, between two barriers:
// what any thread of these blocks wrote before is there for all threads of the
// last block.
// --8<-- [start:splits]
__device__ __forceinline__ bool last_to_arrive(unsigned* ticket, int count) {
  int before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(ticket)), "r"(count - 1)
               : "memory");
  return before == count - 1;
}

// Several blocks share a tile of C, each with a part of the depth. Each leaves
// its sums, TM x TN of each of THREADS threads, and the last to arrive adds up
// all of them, its own included: always in the same order, so that results do
// not change from run to run. True in the block that has the total. Leaves the
// ticket at 0. left: where the first of these blocks leaves its sums; each next
// block leaves its own `apart` * BM * BN words further on.
template <int TM, int TN, int THREADS>
__device__ __forceinline__ bool add_parts(float (&sum)[TN][TM], int part,
                                          int parts, float* left, int apart,
                                          unsigned* ticket) {
  __shared__ bool last;
  constexpr int VECTORS = TM * TN / 4;
  const int next = apart * VECTORS * THREADS;
  float4* const all = reinterpret_cast<float4*>(left) + threadIdx.x;
#pragma unroll
  for (int i = 0; i < VECTORS; ++i)
    all[part * next + i * THREADS] = reinterpret_cast<float4*>(sum)[i];
  __syncthreads();
  if (threadIdx.x == 0) last = last_to_arrive(ticket, parts);
  __syncthreads();
  if (!last) return false;
#pragma unroll
  for (int j = 0; j < TN; ++j)
#pragma unroll
    for (int i = 0; i < TM; ++i) sum[j][i] = 0.0f;
  for (int p = 0; p < parts; ++p) {
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
      const float4 one = __ldcg(all + p * next + i * THREADS);
      float* const to = sum[i * 4 / TM] + i * 4 % TM;
      to[0] += one.x, to[1] += one.y, to[2] += one.z, to[3] += one.w;
    }
  }
  return true;
}
// --8<-- [end:splits]

// Parts whose sums one block adds up.
constexpr int TOGETHER = 16;

// blockIdx.x, in a way that the compiler does not take for the same.
__device__ __forceinline__ int number_again() {
  int number;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(number));
  return number;
}

// The tickets of a shared tile: one for each group, on each level.
__device__ __forceinline__ int tickets_of(int parts) {
  int found = 0;
  while (parts > 1) found += parts = (parts + TOGETHER - 1) / TOGETHER;
  return found;
}

// C = alpha op(A) op(B) + beta C; op(A) is m x k, op(B) is k x n. All matrices
// are row-major; lda, ldb, ldc: words from a row to the next, as the matrix
// lies in memory.
//
//   BM, BN  rows and columns of a tile of C: BM a multiple of 8 * TM and BN of
//           4 * TN, or BM of 4 * TM and BN of 8 * TN, for tiles of whole warps
//   BK      steps of depth in a stage
//   TM, TN  rows and columns of C that a thread computes: multiples of 4
//   STAGES  tiles of A and of B in shared memory, at least 2
//   BLOCKS  blocks that share an SM, each of BM * BN / (TM * TN) threads
//   VEC     words that a copy moves where the layout allows it: 1, 2 or 4;
//           4 (or 2) asks for matrices, leading dimensions and extents (n for
//           B, m for A transposed) that are multiples of 16 (or 8) bytes
//   TA, TB  whether op transposes A, and B
//
// Grid: a block for each of the first `whole` tiles of C. The depth of every
// other tile is cut into `parts` parts, of `per_part` steps each (a multiple of
// BK; the last part may have fewer). For these there is a block for the first
// part of each tile, then one for the second part of each, and so on. In this
// order blocks that run at the same time read the same depths, and share rows
// of A and columns of B in the L2 cache.
//
// partials holds BM * BN words for each block that computes a part, tickets a 0
// for each shared tile and for each of its groups of TOGETHER parts. Launches
// that may overlap need their own. Dynamic shared memory: STAGES tiles of A and
// of B, or what C needs at the end, if that is more.
// --8<-- [start:kernel]
// --8<-- [start:head]
template <int BM, int BN, int BK, int TM, int TN, int STAGES, int BLOCKS,
          int VEC, bool TA, bool TB>
__global__ void __launch_bounds__(BM* BN / (TM * TN), BLOCKS)
    sgemm(int m, int n, int k, float alpha, const float* __restrict__ A,
          int lda, const float* __restrict__ B, int ldb, float beta,
          float* __restrict__ C, int ldc, int whole, int parts, int per_part,
          float* __restrict__ partials, unsigned* __restrict__ tickets) {
  constexpr int THREADS = BM * BN / (TM * TN),
                LANE_ROWS = BM % (8 * TM) == 0 ? 8 : 4,
                LANE_COLUMNS = 32 / LANE_ROWS,
                WARP_COLUMNS = BN / (LANE_COLUMNS * TN);
  static_assert(BM % (LANE_ROWS * TM) == 0 && BN % (LANE_COLUMNS * TN) == 0,
                "tiles of whole warps");
  using OfA = Operand<BM, BK, THREADS, VEC, !TA>;
  using OfB = Operand<BN, BK, THREADS, VEC, TB>;
  extern __shared__ float4 shared[];
  float* const tiles_a = reinterpret_cast<float*>(shared);
  float* const tiles_b = tiles_a + STAGES * OfA::TILE;
  // --8<-- [end:head]

  // --8<-- [start:parts]
  // This block's number among the blocks that share tiles; negative in others.
  const int rest = (int)blockIdx.x - whole;
  const int tile_rows = (m + BM - 1) / BM, tile_columns = (n + BN - 1) / BN;
  const int shared_tiles = tile_rows * tile_columns - whole;
  const int index = rest < 0 ? blockIdx.x : whole + rest % shared_tiles,
            part = rest < 0 ? 0 : rest / shared_tiles;
  const int2 tile = place_of(index, tile_rows, tile_columns);
  // --8<-- [end:parts]
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / WARP_COLUMNS * (LANE_ROWS * TM);
  const int warp_column = warp % WARP_COLUMNS * (LANE_COLUMNS * TN);

  // With alpha = 0, A and B do not count, whatever stands in them.
  const int all = alpha == 0.0f ? 0 : k, start = part * per_part;
  const int depth = rest < 0 ? all : max(0, min(per_part, all - start));
  const int steps = (depth + BK - 1) / BK;
  OfA a_copy(A, lda, tile.y * BM, m, start, tiles_a);
  OfB b_copy(B, ldb, tile.x * BN, n, start, tiles_b);

  // --8<-- [start:first]
  // The first step takes what BK leaves over, so that every later one is whole.
  if (steps > 0) {
    a_copy.template copy<false>(0, depth - (steps - 1) * BK);
    b_copy.template copy<false>(0, depth - (steps - 1) * BK);
    a_copy.advance(depth - (steps - 1) * BK);
    b_copy.advance(depth - (steps - 1) * BK);
  }
  commit();
  // --8<-- [end:first]
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

  // --8<-- [start:loop]
  // A thread reads its words of depth kk + 1 while it multiplies those of kk.
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
      // Start the copies of the step that is STAGES - 1 ahead: those of A here,
      // those of B half a step later, so that copies do not queue up in front
      // of the loads from shared memory.
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
        // Behind the barrier the next tile has arrived for all threads, and all
        // have read what they need of this one.
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
  // --8<-- [end:loop]

  // --8<-- [start:levels]
  // If there are up to TOGETHER parts, the last block to arrive adds them all.
  // If there are more, the last block of each group of TOGETHER adds the group;
  // then the groups are the parts. The tile's number is computed anew: to keep
  // it would cost registers in the main loop.
  if ((int)blockIdx.x >= whole) {
    int mine = part, count = parts;
    int apart = 1, used = 0;
#pragma unroll 1
    while (count > 1) {
      const int shared_tile = (number_again() - whole) % shared_tiles;
      const int group = mine / TOGETHER, first = group * TOGETHER;
      float* const left = partials + (size_t)shared_tile * parts * (BM * BN);
      unsigned* const ticket =
          tickets + shared_tile * tickets_of(parts) + used + group;
      if (!add_parts<TM, TN, THREADS>(
              sum, mine - first, min(TOGETHER, count - first),
              left + (size_t)first * apart * (BM * BN), apart, ticket))
        return;
      count = (count + TOGETHER - 1) / TOGETHER;
      used += count;
      mine = group, apart *= TOGETHER;
    }
  }
  // --8<-- [end:levels]

  // --8<-- [start:store]
  // A warp puts the first four rows of every lane, then the next four, into
  // shared memory, column by column, four rows in a store. It takes them out
  // again so that a lane has four rows of one column, and its neighbor those of
  // the next column: so the warp stores up to 32 neighboring words of a row of
  // C at a time. The padding sends the 8 lanes of a store, and of a load, to
  // different banks.
  constexpr int HIGH = LANE_ROWS * 4, WIDE = LANE_COLUMNS * TN,
                PITCH = HIGH + 4;
  constexpr int ACROSS = WIDE < 32 ? WIDE : 32, DOWN = 32 / ACROSS * 4;
  float* const columns = tiles_a + warp * (WIDE * PITCH);
  const float scale = k == 0 ? 0.0f : alpha;  // NaN times no product is 0
  __syncthreads();  // other warps may still read their last tile
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
    const int lane = threadIdx.x % 32, x = lane % ACROSS, y = lane / ACROSS * 4;
    const int top = tile.y * BM + warp_row + i / 4 * HIGH + y,
              left = tile.x * BN + warp_column + x;
    const float* const from = columns + x * PITCH + y;
    float* c = C + (size_t)top * ldc + left;
#pragma unroll 2
    for (int down = 0; down < HIGH; down += DOWN, c += DOWN * (size_t)ldc) {
#pragma unroll
      for (int right = 0; right < WIDE; right += ACROSS) {
        const float4 four =
            *reinterpret_cast<const float4*>(from + right * PITCH + down);
        // The sum of row i stands at i ^ 1, as `multiply` has it.
        const float rows[] = {four.y, four.x, four.w, four.z};
        float* const to = c + right;
        float old[4] = {};  // all four are read before the first is written
        if (beta != 0.0f) {
#pragma unroll
          for (int r = 0; r < 4; ++r)
            if (top + down + r < m && left + right < n)
              old[r] = beta * to[r * (size_t)ldc];
        }
#pragma unroll
        for (int r = 0; r < 4; ++r)
          if (top + down + r < m && left + right < n)
            to[r * (size_t)ldc] = scale * rows[r] + old[r];
      }
    }
    __syncwarp();
  }
  // --8<-- [end:store]
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance sgemm<64,128,16,8,8,3,3,1,false,true>
// @instance sgemm<128,64,16,8,8,3,3,4,true,true>
// @instance sgemm<64,128,32,8,8,2,3,4,false,false>
// @instance sgemm<64,64,16,8,8,3,6,4,true,false>
// @instance sgemm<32,64,16,4,8,4,8,4,true,true>
// @instance sgemm<32,32,16,4,4,4,8,1,false,false>
// @instance sgemm<16,128,16,4,8,4,6,4,true,false>
// @instance sgemm<128,16,16,8,4,4,6,2,false,false>
// @instance sgemm<128,256,16,8,16,4,1,4,false,false>
