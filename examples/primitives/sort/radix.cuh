// Keys, their digits, and the order of the keys of a tile by one digit: what
// the kernels of counting.cu and onesweep.cu share.
//
//   ordered    an unsigned number that compares as the key does
//   peers      the lanes whose key has the same digit
//   load_tile  a tile, so that the order of memory is known
//   sum_before the sum over the digits before
//   rank_tile  the place of each key among the keys of its tile
#pragma once

#ifndef KEY_BITS
#define KEY_BITS 32  // or 64
#endif
#ifndef KIND
#define KIND 0  // 0: unsigned, 1: signed, 2: floating point
#endif
#ifndef PAIRS
#define PAIRS 0  // 1: each key takes a value of 32 bits along
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef ITEMS
#define ITEMS 32  // keys of a thread
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2  // of an SM: bounds the registers
#endif
#ifndef MATCH
#define MATCH 0  // peers by 0: ballots in PTX, 1: match, 2: ballots in C++;
#endif           // 3: equal digits in any order, for a first pass of keys only
#ifndef BUMP
#define BUMP 1  // a counter is raised by 1: a load and a store, 0: an atomic
#endif          // operation of the last of the peers
#ifndef SHIFTED
#define SHIFTED 0  // 1: a digit by a shift and a mask, 0: by one byte_perm
#endif
#ifndef WIDE
#define WIDE 0  // 1: for 2^30 keys and more
#endif

#if KEY_BITS == 64
using Key = unsigned long long;
#else
using Key = unsigned;
#endif
using Value = unsigned;
#if WIDE
using Count = unsigned long long;
#else
using Count = unsigned;
#endif

constexpr int DIGITS = 256, PASSES = KEY_BITS / 8;
constexpr int WARPS = THREADS / 32, TILE = THREADS * ITEMS;
constexpr unsigned ALL = 0xffffffffu;
static_assert(THREADS >= DIGITS && THREADS % 32 == 0, "a thread for a digit");

// --8<-- [start:ordered]
constexpr Key TOP = Key(1) << (KEY_BITS - 1);  // the sign

// An unsigned number for the bits of a key: these numbers compare as the keys
// do. As in NumPy, all NaN are equal and come last, and -0.0 equals 0.0.
__device__ __forceinline__ Key ordered(Key bits) {
  if constexpr (KIND == 1) return bits ^ TOP;
#if KIND == 2 && KEY_BITS == 32
  const float y = __uint_as_float(bits) + 0.0f;  // -0.0 becomes 0.0
  const unsigned own = __float_as_uint(y);
  return y != y ? ~0u : own ^ ((unsigned)((int)own >> 31) | TOP);
#elif KIND == 2
  constexpr Key INF = 0x7ff0000000000000ull;
  if ((bits & ~TOP) > INF) return ~Key(0);
  if (bits == TOP) return TOP;
  return bits & TOP ? ~bits : bits | TOP;
#endif
  return bits;
}
// --8<-- [end:ordered]

// --8<-- [start:digit]
// A key that no other follows.
constexpr Key LAST = KIND == 1 ? ~TOP : ~Key(0);

__device__ __forceinline__ unsigned digit_of(Key key, int shift) {
#if KEY_BITS == 32 && !SHIFTED
  return __byte_perm(ordered(key), 0, 0x4440 | shift >> 3);  // 4: a zero
#else
  return (unsigned)(ordered(key) >> shift) & (DIGITS - 1);
#endif
}
// --8<-- [end:digit]

// --8<-- [start:peers]
// The lanes of the warp whose digit is mine, as bits.
__device__ __forceinline__ unsigned peers(unsigned digit) {
#if MATCH == 1
  return __match_any_sync(ALL, digit);
#elif MATCH == 2
  // --8<-- [start:ballots]
  unsigned same = ALL;
#pragma unroll
  for (int bit = 0; bit < 8; ++bit) {
    const bool one = digit >> bit & 1;
    const unsigned ones = __ballot_sync(ALL, one);
    same &= one ? ones : ~ones;
  }
  return same;
  // --8<-- [end:ballots]
#else
  unsigned like_me[8], same = ALL;
#pragma unroll
  for (int bit = 0; bit < 8; ++bit)  // the bit is tested once
    asm volatile(
        "{ .reg .pred one; .reg .b32 tested;\n"
        "and.b32 tested, %1, %2;\n"
        "setp.ne.u32 one, tested, 0;\n"
        "vote.sync.ballot.b32 %0, one, 0xffffffff;\n"
        "@!one not.b32 %0, %0; }"
        : "=r"(like_me[bit])
        : "r"(digit), "r"(1u << bit));
#pragma unroll
  for (int bit = 0; bit < 8; bit += 2)
    asm("lop3.b32 %0, %0, %1, %2, 0x80;"  // the and of three
        : "+r"(same)
        : "r"(like_me[bit]), "r"(like_me[bit + 1]));
  return same;
#endif
}
// --8<-- [end:peers]

// --8<-- [start:load]
// Keys or values of a tile: a warp has 32 * ITEMS in a row, 32 of them at a
// time. from: the tile; left: how many there are; rest: for those beyond.
template <typename T>
__device__ __forceinline__ void load_tile(const T* from, unsigned left, T rest,
                                          T (&to)[ITEMS]) {
  const unsigned mine = threadIdx.x / 32 * (32 * ITEMS) + threadIdx.x % 32;
  if (left == TILE) {
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) to[i] = from[mine + 32 * i];
  } else {
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      to[i] = rest;
      if (mine + 32 * i < left) to[i] = from[mine + 32 * i];
    }
  }
}
// --8<-- [end:load]

// --8<-- [start:sum-before]
// The sum of `count` over the threads before this one, of the first 256. All
// threads call it; a barrier is in it.
template <typename T>
__device__ __forceinline__ T sum_before(T count) {
  __shared__ T of_warp[DIGITS / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  T sum = count;
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    const T up = __shfl_up_sync(ALL, sum, by);
    if (lane >= by) sum += up;
  }
  if (warp < DIGITS / 32 && lane == 31) of_warp[warp] = sum;
  __syncthreads();
  T before = 0;
#pragma unroll
  for (int w = 0; w < DIGITS / 32 - 1; ++w)
    if (w < warp) before += of_warp[w];
  return before + sum - count;
}
// --8<-- [end:sum-before]

constexpr int PARTS = MATCH == 3 ? 1 : WARPS;  // lists of counters
constexpr int COUNTERS = PARTS * DIGITS;

// All counters are 0 after it, and the next barrier.
__device__ __forceinline__ void clear_counters(unsigned* counters) {
#pragma unroll
  for (int i = threadIdx.x; i < COUNTERS; i += THREADS) counters[i] = 0;
}

// --8<-- [start:turns]
// The turns of a warp: 32 keys at a time, one after the other in the lanes.
// Calls place(i, r) for each key, where r is what the counter of its digit was
// before this key, and raises the counters. own: those of this warp.
template <typename F>
__device__ __forceinline__ void take_turns(const Key (&key)[ITEMS], int shift,
                                           unsigned* own, F place) {
  const int lane = threadIdx.x % 32;
  const unsigned up_to_me = ALL >> (31 - lane);
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const unsigned digit = digit_of(key[i], shift);
    const unsigned same = peers(digit);
    const int last = 31 - __clz(same);  // it counts for all of them
    const unsigned number = __popc(same & up_to_me);
#if BUMP
    volatile unsigned* const counter = own + digit;
    const unsigned old = *counter;
    __syncwarp();
    if (lane == last) *counter = old + number;
#else
    unsigned old = 0;
    if (lane == last) old = atomicAdd(own + digit, number);
    old = __shfl_sync(ALL, old, last);
#endif
    __syncwarp();  // in the next turn another lane may be the last
    place(i, old + number - 1);
  }
}
// --8<-- [end:turns]

// --8<-- [start:rank]
// Calls place(i, rank) for each key of the tile: how many of its keys come
// before it, by the digit and then by their order in memory. The first 256
// threads call publish(count) as soon as it is known how many keys have their
// digit. Returns to them how many keys have a digit before theirs. left: keys
// of the tile. counters: zeros.
template <typename P, typename F>
__device__ __forceinline__ unsigned rank_tile(const Key (&key)[ITEMS],
                                              int shift, unsigned left,
                                              unsigned* counters, P publish,
                                              F place) {
  const int digit = threadIdx.x;
#if MATCH == 3  // keys beyond the last take no place among those of 255
  const unsigned mine = threadIdx.x / 32 * (32 * ITEMS) + threadIdx.x % 32;
  unsigned rank[ITEMS];
#pragma unroll
  for (int i = 0; i < ITEMS; ++i)
    if (left == TILE || mine + 32 * i < left)
      rank[i] = atomicAdd(counters + digit_of(key[i], shift), 1u);
#else
  unsigned* const own = counters + threadIdx.x / 32 * DIGITS;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) atomicAdd(own + digit_of(key[i], shift), 1u);
#endif
  __syncthreads();
  unsigned before[PARTS], count = 0;  // in the warps before
  if (digit < DIGITS) {
#pragma unroll
    for (int w = 0; w < PARTS; ++w) {
      before[w] = count;
      count += counters[w * DIGITS + digit];
    }
    publish(count);
  }
  const unsigned start = sum_before(count);
  if (digit < DIGITS) {
#pragma unroll
    for (int w = 0; w < PARTS; ++w)
      counters[w * DIGITS + digit] = start + before[w];
  }
  __syncthreads();
#if MATCH == 3
#pragma unroll
  for (int i = 0; i < ITEMS; ++i)
    if (left == TILE || mine + 32 * i < left)
      place(i, rank[i] + counters[digit_of(key[i], shift)]);
#else
  take_turns(key, shift, own, place);
#endif
  return start;
}
// --8<-- [end:rank]
