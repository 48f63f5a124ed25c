// Non-maximum suppression: of boxes that overlap, the one with the best score
// stays.
//
//   score_keys   scores as numbers to sort by, the best first
//   sorted_boxes the boxes in that order
//   pair_mask    a bit for each pair of boxes: whether they overlap too much
//   keep_boxes   the serial pass, box by box
//   keep_tiles   64 boxes at a time
//   keep_ahead   the next 64 are decided while the last 64 remove others
//   keep_together a block for each 64, which decides what is known by now
//   list_kept    the indices of those that stay, behind keep_together
//
// Boxes are x1, y1, x2, y2. *count of them, in an array, take part: what
// filtered them is on the GPU, too.
using Word = unsigned long long;

constexpr unsigned ALL = 0xffffffffu;
constexpr int TILE = 64;  // boxes: the bits of a word

#ifndef THREADS
#define THREADS 1024  // of the block of the serial pass
#endif
#ifndef EACH
#define EACH 256  // of the block of a tile, where each tile has one
#endif
#ifndef COLUMNS
#define COLUMNS 4  // tiles of columns of a block of pair_mask
#endif
#ifndef AT_ONCE
#define AT_ONCE 4  // words that a lane asks for before it looks at them
#endif
#ifndef LABELS
#define LABELS 1  // whether boxes have classes
#endif
#ifndef BY_TILES
#define BY_TILES 0  // whether the words of a tile lie side by side, or a box's
#endif
static_assert(THREADS % 32 == 0 && THREADS >= 64, "a warp decides, one writes");
static_assert(EACH % 32 == 0, "whole warps");

// --8<-- [start:keys]
// A number that sorts as the scores do, but the best first. -0.0 equals 0.0.
__device__ __forceinline__ unsigned falling(float score) {
  const unsigned bits = __float_as_uint(score + 0.0f);
  return bits >> 31 ? bits : ~bits & 0x7fffffffu;
}

// keys, indices: to be sorted. Scores below `least`, and NaN, come last; the
// others are counted in *count, which is 0 before.
extern "C" __global__ void score_keys(const float* __restrict__ scores, int n,
                                      float least, unsigned* __restrict__ keys,
                                      unsigned* __restrict__ indices,
                                      int* __restrict__ count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const bool in = i < n && scores[i] >= least;
  const unsigned all = __ballot_sync(ALL, in);
  if (threadIdx.x % 32 == 0 && all) atomicAdd(count, __popc(all));
  if (i >= n) return;
  keys[i] = in ? falling(scores[i]) : ALL;
  indices[i] = i;
}
// --8<-- [end:keys]

// --8<-- [start:sorted]
// classes, out_classes: both null where all boxes are of one class.
extern "C" __global__ void sorted_boxes(const float4* __restrict__ boxes,
                                        const int* __restrict__ classes,
                                        const unsigned* __restrict__ order,
                                        const int* __restrict__ count,
                                        float4* __restrict__ out,
                                        int* __restrict__ out_classes) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= *count) return;
  const unsigned from = order[i];
  out[i] = boxes[from];
  if (classes) out_classes[i] = classes[from];
}
// --8<-- [end:sorted]

// --8<-- [start:overlap]
__device__ __forceinline__ float area(float4 box) {
  return __fmul_rn(box.z - box.x, box.w - box.y);
}

// Below 0 if the boxes share more than `limit` of what they cover together. One
// side is cut off at 0: if only the other is negative, so is the product, and
// the answer is no. No multiplication and addition is made one, so that NumPy
// finds the same bits.
__device__ __forceinline__ float apart(float4 a, float of_a, float4 b,
                                       float of_b, float limit) {
  const float w = fmaxf(fminf(a.z, b.z) - fmaxf(a.x, b.x), 0.0f);
  const float h = fminf(a.w, b.w) - fmaxf(a.y, b.y);
  const float both = __fmul_rn(w, h);
  return __fmul_rn(limit, of_a + of_b - both) - both;
}
// --8<-- [end:overlap]

// Where the word of box i and a tile of others lies in the mask.
__device__ __forceinline__ long long place(int i, int tile, int tiles) {
  return BY_TILES ? (long long)tile * tiles * TILE + i
                  : (long long)i * tiles + tile;
}

// --8<-- [start:mask]
// mask, bit j of the word of box i and tile t: whether box i overlaps box
// 64 t + j, for tiles t from that of box i on. A thread has a box, a block 64
// of them and COLUMNS tiles. In its own tile a box has bits for the boxes
// before it, too. classes counts if LABELS is 1.
extern "C" __global__ void __launch_bounds__(TILE)
    pair_mask(const float4* __restrict__ boxes, const int* __restrict__ classes,
              const int* __restrict__ count, int tiles, float limit,
              Word* __restrict__ mask) {
  __shared__ float4 other[TILE];
  __shared__ float of_other[TILE];
  __shared__ int class_of_other[TILE];
  const int n = *count;
  const int row = blockIdx.y, first = blockIdx.x * COLUMNS;
  if (row * TILE >= n || first + COLUMNS <= row) return;
  const int t = threadIdx.x, i = row * TILE + t;
  const float4 mine = boxes[min(i, n - 1)];
  const float of_mine = area(mine);
  const int my_class = LABELS ? classes[min(i, n - 1)] : 0;
  for (int column = max(first, row);
       column < first + COLUMNS && column * TILE < n; ++column) {
    const int k = column * TILE + t;
    // Behind the last box: one without an area, which overlaps none.
    other[t] = k < n ? boxes[k] : float4{0, 0, 0, 0};
    of_other[t] = area(other[t]);
    if (LABELS) class_of_other[t] = classes[min(k, n - 1)];
    __syncthreads();
    Word bits = 0;
#pragma unroll 1
    for (int half = 32; half >= 0; half -= 32) {
      unsigned found = 0;
#pragma unroll
      for (int j = half + 31; j >= half; --j) {
        float far = apart(mine, of_mine, other[j], of_other[j], limit);
        if (LABELS && my_class != class_of_other[j]) far = 0.0f;
        // Its sign moves in from the right. A sum that is NaN has none.
        found = __funnelshift_l(__float_as_uint(far), found, 1);
      }
      bits = bits << 32 | found;
    }
    if (column == row) bits &= ~(Word(1) << t);
    if (i < n) mask[place(i, column, tiles)] = bits;
    __syncthreads();
  }
}
// --8<-- [end:mask]

// --8<-- [start:keep-boxes]
// One block. kept[0 .. *kept_count): the indices of the boxes that stay, the
// best first. order: the index of each box. A barrier for each box that stays.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    keep_boxes(const Word* __restrict__ mask, const int* __restrict__ count,
               int tiles, const unsigned* __restrict__ order,
               int* __restrict__ kept, int* __restrict__ kept_count) {
  extern __shared__ Word removed[];  // a bit for each box
  const int n = *count;
  for (int w = threadIdx.x; w < tiles; w += THREADS) removed[w] = 0;
  __syncthreads();
  int so_far = 0;
  for (int i = 0; i < n; ++i) {
    if (removed[i / TILE] >> i % TILE & 1) continue;  // all threads agree
    if (threadIdx.x == 0) kept[so_far] = order[i];
    ++so_far;
    __syncthreads();  // all have looked before a word changes
    for (int w = i / TILE + threadIdx.x; w * TILE < n; w += THREADS)
      removed[w] |= mask[place(i, w, tiles)];
    __syncthreads();
  }
  if (threadIdx.x == 0) *kept_count = so_far;
}
// --8<-- [end:keep-boxes]

// --8<-- [start:decide]
// Two boxes of a tile in each lane: that of the lane, and the one 32 behind.
struct Two {
  Word low, high;
};

// A bit for each box of the tile.
__device__ __forceinline__ Word ballots(bool low, bool high) {
  return Word(__ballot_sync(ALL, high)) << 32 | __ballot_sync(ALL, low);
}

// The bits of the boxes of a tile that stay. gone: those that are removed or
// beyond the last. overlaps: with boxes of the same tile. A box stays when all
// boxes before it that it overlaps are gone, and is gone when one of them
// stays. In each turn the first that is open is decided, and mostly many are.
__device__ __forceinline__ Word decide(Word gone, Two overlaps) {
  const int lane = threadIdx.x % 32;
  const Word low = overlaps.low & ((Word(1) << lane) - 1);
  const Word high = overlaps.high & ((Word(1) << (lane + 32)) - 1);
  Word stay = 0;
  while (~(gone | stay)) {
    stay |= ballots(!(low & ~gone), !(high & ~gone)) & ~gone;
    gone |= ballots(low & stay, high & stay);
  }
  return stay;
}
// --8<-- [end:decide]

// --8<-- [start:rows]
// The words of a tile's boxes at column w, two in each lane; zeros beyond the
// last box.
__device__ __forceinline__ Two words_at(const Word* mask, int tiles, int n,
                                        int tile, int w) {
  const int i = tile * TILE + threadIdx.x % 32;
  if (w * TILE >= n) return {0, 0};
  return {i < n ? mask[place(i, w, tiles)] : 0,
          i + 32 < n ? mask[place(i + 32, w, tiles)] : 0};
}

__device__ __forceinline__ Word beyond(int n, int tile) {
  const int left = n - tile * TILE;
  return left >= TILE ? 0 : ~Word(0) << left;
}

// Warps `first` and up: the boxes of a tile that stay remove others, from the
// words `from` on. A warp takes one row after the other.
__device__ __forceinline__ void remove(const Word* mask, int tiles, int n,
                                       int tile, Word stay, int from, int first,
                                       Word* removed) {
  const int words = (n + TILE - 1) / TILE, lane = threadIdx.x % 32;
  for (int r = threadIdx.x / 32 - first; r < TILE; r += THREADS / 32 - first) {
    if (!(stay >> r & 1)) continue;
    const int i = tile * TILE + r;
    for (int w = from + lane; w < words; w += 32 * AT_ONCE) {
      Word bits[AT_ONCE];
#pragma unroll
      for (int k = 0; k < AT_ONCE; ++k)
        bits[k] = w + 32 * k < words ? mask[place(i, w + 32 * k, tiles)] : 0;
#pragma unroll
      for (int k = 0; k < AT_ONCE; ++k)
        if (bits[k]) atomicOr(removed + w + 32 * k, bits[k]);
    }
  }
}

// Writes the indices of a tile's boxes that stay, by one warp.
__device__ __forceinline__ void write(const unsigned* order, int tile,
                                      Word stay, int before, int* kept) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int bit = lane; bit < TILE; bit += 32)
    if (stay >> bit & 1)
      kept[before + __popcll(stay & ((Word(1) << bit) - 1))] =
          order[tile * TILE + bit];
}
// --8<-- [end:rows]

// --8<-- [start:keep-tiles]
// As keep_boxes, but a warp decides 64 boxes, and then all warps remove.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    keep_tiles(const Word* __restrict__ mask, const int* __restrict__ count,
               int tiles, const unsigned* __restrict__ order,
               int* __restrict__ kept, int* __restrict__ kept_count) {
  extern __shared__ Word removed[];
  __shared__ Word decided;
  const int n = *count;
  for (int w = threadIdx.x; w < tiles; w += THREADS) removed[w] = 0;
  __syncthreads();
  int so_far = 0;
  for (int tile = 0; tile * TILE < n; ++tile) {
    if (threadIdx.x < 32) {
      const Two overlaps = words_at(mask, tiles, n, tile, tile);
      const Word stay = decide(removed[tile] | beyond(n, tile), overlaps);
      write(order, tile, stay, so_far, kept);
      if (threadIdx.x == 0) decided = stay;
    }
    __syncthreads();
    const Word stay = decided;
    so_far += __popcll(stay);
    remove(mask, tiles, n, tile, stay, tile + 1, 0, removed);
    __syncthreads();
  }
  if (threadIdx.x == 0) *kept_count = so_far;
}
// --8<-- [end:keep-tiles]

// --8<-- [start:keep-ahead]
__device__ __forceinline__ Word any_lane(Word bits) {
#if __CUDA_ARCH__ >= 800
  return Word(__reduce_or_sync(ALL, (unsigned)(bits >> 32))) << 32 |
         __reduce_or_sync(ALL, (unsigned)bits);
#else
#pragma unroll
  for (int by = 16; by > 0; by /= 2) bits |= __shfl_xor_sync(ALL, bits, by);
  return bits;
#endif
}

// As keep_tiles. Warp 0 needs one word to go on, that of its next tile: it
// makes this one itself, from words that it has asked for a step before. The
// other warps are one tile behind it.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    keep_ahead(const Word* __restrict__ mask, const int* __restrict__ count,
               int tiles, const unsigned* __restrict__ order,
               int* __restrict__ kept, int* __restrict__ kept_count) {
  extern __shared__ Word removed[];
  __shared__ Word decided[2];
  const int n = *count, warp = threadIdx.x / 32;
  for (int w = threadIdx.x; w < tiles; w += THREADS) removed[w] = 0;
  __syncthreads();
  int so_far = 0;
  Word by_last = 0;  // what the tile before removes of this one
  Two own = {0, 0}, next = {0, 0};
  if (warp == 0) {
    own = words_at(mask, tiles, n, 0, 0);
    next = words_at(mask, tiles, n, 0, 1);
  }
  const int last = (n + TILE - 1) / TILE;
  for (int tile = 0; tile <= last; ++tile) {
    if (warp == 0) {
      if (tile < last) {
        const Two own_later = words_at(mask, tiles, n, tile + 1, tile + 1);
        const Two next_later = words_at(mask, tiles, n, tile + 1, tile + 2);
        const Word gone = removed[tile] | by_last | beyond(n, tile);
        const Word stay = decide(gone, own);
        const int lane = threadIdx.x;
        by_last = any_lane((stay >> lane & 1 ? next.low : 0) |
                           (stay >> (lane + 32) & 1 ? next.high : 0));
        if (lane == 0) decided[tile % 2] = stay;
        own = own_later, next = next_later;
      }
    } else if (tile > 0) {
      const Word stay = decided[(tile - 1) % 2];
      if (warp == 1) write(order, tile - 1, stay, so_far, kept);
      so_far += __popcll(stay);
      remove(mask, tiles, n, tile - 1, stay, tile + 1, 1, removed);
    }
    __syncthreads();
  }
  if (threadIdx.x == 32) *kept_count = so_far;
}
// --8<-- [end:keep-ahead]

// --8<-- [start:state]
// What all blocks know: zeros before the launch.
//   state[0]                       a ticket: the next tile
//   state[1 ... tiles]             by tile, the boxes that stay
//   state[1 + tiles ... 2 * tiles] by tile, the boxes that are gone
// A bit that is set remains set. So whoever reads an old word knows less, but
// nothing wrong.
__device__ __forceinline__ volatile Word* stay_of(Word* state) {
  return state + 1;
}
__device__ __forceinline__ volatile Word* gone_of(Word* state, int tiles) {
  return state + 1 + tiles;
}
// --8<-- [end:state]

// --8<-- [start:look]
// What the boxes of a tile learn from the tiles before it: who is removed by a
// box that stays, and who overlaps a box of which nobody knows yet. A warp
// looks at every so-many-th tile, a lane at two boxes there. asks[t]: whether
// tile t can still say something new to the `open` boxes of this one.
__device__ __forceinline__ Two look(const Word* mask, Word* state, int tiles,
                                    int n, int tile, Word open,
                                    unsigned char* asks) {
  constexpr int WARPS = EACH / 32;
  const int lane = threadIdx.x % 32;
  Word removed = 0, waits = 0;
  for (int first = threadIdx.x / 32; first < tile; first += WARPS * AT_ONCE) {
    Two words[AT_ONCE];
    Word stay[AT_ONCE], gone[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      const int t = first + k * WARPS;
      const bool ask = t < tile && asks[t];
      words[k] = ask ? words_at(mask, tiles, n, t, tile) : Two{0, 0};
      stay[k] = ask ? stay_of(state)[t] : 0;
      gone[k] = ask ? gone_of(state, tiles)[t] : 0;
    }
    __syncwarp();  // all lanes have read asks
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      const int t = first + k * WARPS;
      const Word known = stay[k] | gone[k];
      removed |= (stay[k] >> lane & 1 ? words[k].low : 0) |
                 (stay[k] >> (lane + 32) & 1 ? words[k].high : 0);
      const Word new_waits = (known >> lane & 1 ? 0 : words[k].low) |
                             (known >> (lane + 32) & 1 ? 0 : words[k].high);
      const bool any = __any_sync(ALL, (new_waits & open) != 0);
      if (!any && lane == 0 && t < tile) asks[t] = 0;
      waits |= new_waits;
    }
  }
  return {any_lane(removed), any_lane(waits)};
}
// --8<-- [end:look]

// --8<-- [start:keep-together]
// A block for each tile, and no order among them: a box is decided as soon as
// all boxes before it that it overlaps are. The block with tile t needs only
// blocks that have drawn their tickets before, so all that it waits for run.
extern "C" __global__ void __launch_bounds__(EACH)
    keep_together(const Word* __restrict__ mask, const int* __restrict__ count,
                  int tiles, Word* __restrict__ state) {
  extern __shared__ unsigned char asks[];
  __shared__ int ticket;
  __shared__ Word removed, waits, open_now;
  const int n = *count, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    ticket = atomicAdd((unsigned*)state, 1);
    removed = waits = 0;
  }
  __syncthreads();
  const int tile = ticket;
  if (tile * TILE >= n) return;
  for (int t = threadIdx.x; t < tile; t += EACH) asks[t] = 1;
  Two own = {0, 0};
  if (warp == 0) own = words_at(mask, tiles, n, tile, tile);
  const Word low = own.low & ((Word(1) << lane) - 1);
  const Word high = own.high & ((Word(1) << (lane + 32)) - 1);
  Word stay = 0, gone = beyond(n, tile), open = ~gone;
  __syncthreads();
  while (open) {
    const Two found = look(mask, state, tiles, n, tile, open, asks);
    if (lane == 0 && found.low) atomicOr(&removed, found.low);
    if (lane == 0 && found.high) atomicOr(&waits, found.high);
    __syncthreads();
    if (warp == 0) {
      gone |= removed;
      const Word not_yet = waits;
      __syncwarp();  // all lanes have read it
      for (Word now = ~Word(0); now;) {
        now =
            ballots(!(low & ~gone), !(high & ~gone)) & ~(stay | gone | not_yet);
        stay |= now;
        gone |= ballots(low & stay, high & stay);
      }
      if (lane == 0) {
        if (stay) stay_of(state)[tile] = stay;
        if (gone) gone_of(state, tiles)[tile] = gone;
        open_now = ~(stay | gone);
        waits = 0;
      }
    }
    __syncthreads();
    open = open_now;
  }
}
// --8<-- [end:keep-together]

// --8<-- [start:list]
// A block for each tile, a thread for each box.
extern "C" __global__ void __launch_bounds__(TILE)
    list_kept(Word* __restrict__ state, const int* __restrict__ count,
              int tiles, const unsigned* __restrict__ order,
              int* __restrict__ kept, int* __restrict__ kept_count) {
  __shared__ int before;
  const int n = *count, tile = blockIdx.x, last = (n + TILE - 1) / TILE - 1;
  if (tile > max(last, 0)) return;
  volatile Word* const stay_at = stay_of(state);
  if (threadIdx.x == 0) before = 0;
  __syncthreads();
  int own = 0;
  for (int t = threadIdx.x; t < tile; t += TILE) own += __popcll(stay_at[t]);
  atomicAdd(&before, own);
  __syncthreads();
  const Word stay = n ? stay_at[tile] : 0, below = (Word(1) << threadIdx.x) - 1;
  if (stay >> threadIdx.x & 1)
    kept[before + __popcll(stay & below)] = order[tile * TILE + threadIdx.x];
  if (threadIdx.x == 0 && tile == max(last, 0))
    *kept_count = before + __popcll(stay);
}
// --8<-- [end:list]
