// How tiles hand on their sums in one launch:
//
//   number_of       which launch this is
//   draw, ticket_of tickets
//   announce        a tile's sum, for the tiles behind it
//   look_back       what precedes a tile, by windows of words (Merrill and
//                   Garland 2016)
//   in_order        the same in groups of tiles, always added in one order
//
// state: memory that was 0 before the first launch ever. Nobody sets it back
// in between: each word says which launch has written it.
#pragma once
#include "primitives/scan/tiles.cuh"

#ifndef LOOK
#define LOOK 1  // words that each thread reads at once
#endif
#ifndef COPIES
#define COPIES 8  // of a group's prefix, so that not all ask for one word
#endif
#ifndef PAUSE_NS
#define PAUSE_NS 0  // between two looks at a word that is not there yet
#endif

using Word = unsigned long long;

constexpr int GROUP = BLOCK * LOOK;  // tiles of a group of `in_order`
// Words of state in front of the tiles' own: the counter, alone in its line.
constexpr int HEADER = 16;
// Words of a tile, which the size of its sum decides.
template <typename P>
constexpr int WORDS = sizeof(P) > 4 ? 2 : 1;

// --8<-- [start:number]
// The upper half of the counter tells how many launches have ended, the lower
// half how many tickets of this one are drawn. Launches get numbers from 1 to
// 2^29 - 1, and then from 1 again.
__device__ __forceinline__ unsigned number_of(Word counter) {
  return (unsigned)(counter >> 32) % ((1u << 29) - 1) + 1;
}

struct Ticket {
  int tile;
  unsigned number;
};

// One thread of a block draws. A tile waits only for tiles whose tickets were
// drawn before its own, so by blocks that run already.
__device__ __forceinline__ Word draw(Word* counter) {
  return atomicAdd(counter, Word(1));
}

// What was drawn. draws: of the whole launch; the last one makes the counter
// ready for the next launch, since nobody else will touch it.
__device__ __forceinline__ Ticket ticket_of(Word drawn, Word* counter,
                                            unsigned draws) {
  if ((unsigned)drawn == draws - 1) *counter = ((drawn >> 32) + 1) << 32;
  return {(int)(unsigned)drawn, number_of(drawn)};
}
// --8<-- [end:number]

// --8<-- [start:word]
enum State { SUM = 1, PREFIX = 2 };  // of the tile; of all up to its end

// Behind the sum stands a tag: the launch, a bit for the sum's own use (see
// segments.cu), and the State. A word of 8 or 16 bytes is written, and read,
// all at once, so no fence is needed. `relaxed` asks for no order with anything
// else; `gpu` makes the word go to L2, where all SMs see it.
__device__ __forceinline__ unsigned tag(unsigned number, State state) {
  return number << 3 | state;
}

__device__ __forceinline__ void post_bits(Word* at, unsigned sum,
                                          unsigned tag) {
  const Word both = (Word)tag << 32 | sum;
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(both)
               : "memory");
}
__device__ __forceinline__ unsigned peek_bits(const Word* at, unsigned& sum) {
  Word both;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
               : "=l"(both)
               : "l"(at)
               : "memory");
  sum = (unsigned)both;
  return both >> 32;
}

__device__ __forceinline__ void post_bits(Word* at, Word sum, unsigned tag) {
  asm volatile(
      "{ .reg .b128 word;\n"
      "mov.b128 word, {%1, %2};\n"
      "st.relaxed.gpu.global.b128 [%0], word; }" ::"l"(at),
      "l"(sum), "l"((Word)tag)
      : "memory");
}
__device__ __forceinline__ unsigned peek_bits(const Word* at, Word& sum) {
  Word high;
  asm volatile(
      "{ .reg .b128 word;\n"
      "ld.relaxed.gpu.global.b128 word, [%2];\n"
      "mov.b128 {%0, %1}, word; }"
      : "=l"(sum), "=l"(high)
      : "l"(at)
      : "memory");
  return (unsigned)high;
}
// --8<-- [end:word]

template <int BYTES>
struct BitsOf {
  using Type = unsigned;
};
template <>
struct BitsOf<8> {
  using Type = Word;
};

template <typename P>
__device__ __forceinline__ void post(Word* at, P sum, unsigned tag) {
  using Bits = typename BitsOf<sizeof(P)>::Type;
  post_bits(at, reinterpret_cast<const Bits&>(sum), tag);
}

// Whether a word is of this launch; if so, its sum and its State.
template <typename P>
__device__ __forceinline__ bool peek(const Word* at, unsigned number, P& sum,
                                     unsigned& state) {
  typename BitsOf<sizeof(P)>::Type bits;
  const unsigned found = peek_bits(at, bits);
  sum = reinterpret_cast<const P&>(bits);
  state = found & 3;
  return found >> 3 == number;
}

// A tile tells its sum as soon as it knows it. words: the first tile's.
template <typename P>
__device__ __forceinline__ void announce(Word* words, int tile, unsigned number,
                                         P sum) {
  post(words + (long long)tile * WORDS<P>, sum,
       tag(number, tile ? SUM : PREFIX));
}

// --8<-- [start:look-back]
// The sum of all tiles before this one, which `announce` has told of; called by
// one warp. sum: of this tile. words: the first tile's.
template <typename P>
__device__ __forceinline__ P look_back(Word* words, int tile, unsigned number,
                                       P sum) {
  const int lane = threadIdx.x % 32;
  P before = P();
  for (int end = tile; end > 0; end -= 32 * LOOK) {
    // Lane 0 has the LOOK words next to the end, lane 1 those before, ...
    P found[LOOK];
    unsigned state[LOOK];
    bool all;
    do {
      all = true;
#pragma unroll
      for (int k = 0; k < LOOK; ++k) {
        const int at = end - 1 - lane * LOOK - k;
        found[k] = P(), state[k] = PREFIX;  // before the first tile: nothing
        if (at >= 0)
          all &= peek(words + (long long)at * WORDS<P>, number, found[k],
                      state[k]);
      }
      if (PAUSE_NS && !all) __nanosleep(PAUSE_NS);
    } while (!all);
    P part = found[0];
    bool whole = state[0] == PREFIX;
#pragma unroll
    for (int k = 1; k < LOOK; ++k) {
      if (!whole) part = found[k] + part;
      whole |= state[k] == PREFIX;
    }
    // Behind the nearest prefix nothing counts: it has it all.
    const unsigned prefixes = __ballot_sync(ALL, whole);
    if (prefixes & ((1u << lane) - 1)) part = P();
    // Neighbors first: only so is each left operand the one before in memory.
#pragma unroll
    for (int reach = 1; reach < 32; reach *= 2) part = down(part, reach) + part;
    before = from(part, 0) + before;
    if (prefixes) break;
  }
  if (lane == 0 && tile > 0)
    post(words + (long long)tile * WORDS<P>, before + sum, tag(number, PREFIX));
  return before;
}
// --8<-- [end:look-back]

// --8<-- [start:in-order]
// The same, but every launch adds in the same order, whatever comes first.
// Called by all threads of a block; of_warp: WARPS sums in shared memory, of
// nobody else, and `prefix` one more. Tiles form groups of GROUP. A tile adds
// up the sums of the tiles before it in its group, and what precedes the group.
// That is posted by the last tile of the group before. A thread has LOOK words;
// the last word of all is no tile's before this one, and so the group's.
template <typename P>
__device__ __forceinline__ P in_order(Word* words, int tile, int tiles,
                                      unsigned number, P sum, P* of_warp,
                                      P* prefix) {
  constexpr int LINE = 16;  // words
  const int thread = threadIdx.x, group = tile / GROUP, rank = tile % GROUP;
  const Word* first = words + (long long)(tile - rank) * WORDS<P>;
  Word* groups = words + (((long long)tiles * WORDS<P> + LINE - 1) / LINE +
                          (long long)group * COPIES) *
                             LINE;
  P found[LOOK];
  bool all;
  do {
    all = true;
#pragma unroll
    for (int k = 0; k < LOOK; ++k) {
      const int at = thread * LOOK + k;
      const Word* word = at < rank ? first + at * WORDS<P>
                         : at == GROUP - 1 && group
                             ? groups + tile % COPIES * LINE
                             : nullptr;
      unsigned state;
      found[k] = P();
      if (word) all &= peek(word, number, found[k], state);
    }
    if (PAUSE_NS && !all) __nanosleep(PAUSE_NS);
  } while (!all);
  if (thread == BLOCK - 1) {
    *prefix = found[LOOK - 1];
    found[LOOK - 1] = P();
  }
  P part = found[0];
#pragma unroll
  for (int k = 1; k < LOOK; ++k) part = part + found[k];
#pragma unroll
  for (int reach = 16; reach > 0; reach /= 2) part = part + down(part, reach);
  if (thread % 32 == 0) of_warp[thread / 32] = part;
  __syncthreads();
  P in_group = of_warp[0];
#pragma unroll
  for (int w = 1; w < WARPS; ++w) in_group = in_group + of_warp[w];
  const P before = *prefix + in_group;
  if (rank == GROUP - 1 && tile + 1 < tiles && thread < COPIES)
    post(groups + (COPIES + thread) * LINE, before + sum, tag(number, PREFIX));
  return before;
}
// --8<-- [end:in-order]
