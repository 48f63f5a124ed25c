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
#define THREADS 384
#endif
#ifndef ITEMS
#define ITEMS 20  // keys of a thread
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2  // of an SM: bounds the registers
#endif
#ifndef MATCH
#define MATCH 0  // peers by 0: ballots, 1: match, 2: a mask in shared memory,
#endif           // 4: ballots as the compiler writes them, 5: 0 and 2 in turn;
                 // 3: equal digits in any order, for a first pass of keys only
#ifndef EARLY
#define EARLY 1  // 1: digits are counted before ranks are made
#endif
#ifndef BUMP
#define BUMP 0  // the counter of a digit is raised by 0: an atomic operation,
#endif          // 1: a load and a store
#ifndef BATCH
#define BATCH 4  // keys whose peers are found before the first counter is read
#endif
#ifndef STREAM
#define STREAM 0  // 1: input leaves the caches first
#endif
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
constexpr Key INF = KEY_BITS == 64 ? (Key)0x7ff0000000000000ull : 0x7f800000u;

// An unsigned number for the bits of a key: these numbers compare as the keys
// do. As in NumPy, all NaN are equal and come last, and -0.0 equals 0.0.
__device__ __forceinline__ Key ordered(Key bits) {
  if constexpr (KIND == 1) return bits ^ TOP;
  if constexpr (KIND == 2) {
    if ((bits & ~TOP) > INF) return ~Key(0);
    if (bits == TOP) return TOP;
    return bits & TOP ? ~bits : bits | TOP;
  }
  return bits;
}

// A key that no other follows.
constexpr Key LAST = KIND == 1 ? ~TOP : ~Key(0);

__device__ __forceinline__ unsigned digit_of(Key key, int shift) {
#if KEY_BITS == 32 && !SHIFTED
  return __byte_perm(ordered(key), 0, 0x4440 | shift >> 3);  // 4: a zero
#else
  return (unsigned)(ordered(key) >> shift) & (DIGITS - 1);
#endif
}
// --8<-- [end:ordered]

// --8<-- [start:peers]
// The lanes of the warp whose digit is mine, as bits.
__device__ __forceinline__ unsigned peers(unsigned digit) {
#if MATCH == 1
  return __match_any_sync(ALL, digit);
#elif MATCH == 4
  unsigned same = ALL;
#pragma unroll
  for (int bit = 0; bit < 8; ++bit) {
    const bool one = digit >> bit & 1;
    const unsigned ones = __ballot_sync(ALL, one);
    same &= one ? ones : ~ones;
  }
  return same;
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

template <typename T>
__device__ __forceinline__ T load_once(const T* from) {
#if STREAM
  return __ldcs(from);
#else
  return *from;
#endif
}

// --8<-- [start:load]
// Keys or values of a tile: a warp has 32 * ITEMS in a row, 32 of them at a
// time. from: the tile; left: how many there are; rest: for those beyond.
template <typename T>
__device__ __forceinline__ void load_tile(const T* from, unsigned left, T rest,
                                          T (&to)[ITEMS]) {
  const unsigned mine = threadIdx.x / 32 * (32 * ITEMS) + threadIdx.x % 32;
  if (left == TILE) {
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) to[i] = load_once(from + mine + 32 * i);
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
constexpr int COUNTERS = PARTS * DIGITS * (MATCH == 2 || MATCH == 5 ? 2 : 1);

// All counters are 0 after it, and the next barrier.
__device__ __forceinline__ void clear_counters(unsigned* counters) {
#pragma unroll
  for (int i = threadIdx.x; i < COUNTERS; i += THREADS) counters[i] = 0;
}

// --8<-- [start:turns]
// One turn of a warp: 32 keys, one after the other in the lanes. Calls
// place(i, r) for each key, where r is what the counter of its digit was before
// this key, and raises the counters. own: those of this warp. left: how many
// keys the tile has.
template <typename F>
__device__ __forceinline__ void take_turns(const Key (&key)[ITEMS], int shift,
                                           unsigned* own, unsigned left,
                                           F place) {
  const int lane = threadIdx.x % 32;
#if MATCH == 3
  // Keys beyond the last would take places among those of the last digit.
  const unsigned mine = threadIdx.x / 32 * (32 * ITEMS) + lane;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i)
    if (left == TILE || mine + 32 * i < left)
      place(i, atomicAdd(own + digit_of(key[i], shift), 1u));
#else
  const unsigned up_to_me = ALL >> (31 - lane);
#pragma unroll
  for (int from = 0; from < ITEMS; from += BATCH) {
    unsigned same[BATCH], old[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; ++b) {
      if (from + b >= ITEMS) break;
      const unsigned digit = digit_of(key[from + b], shift);
      if (MATCH == 2 || (MATCH == 5 && (from + b) % 2)) {
        unsigned* const mask = own + PARTS * DIGITS + digit;
        atomicOr(mask, 1u << lane);
        __syncwarp();
        same[b] = *(volatile unsigned*)mask;
        __syncwarp();
        *(volatile unsigned*)mask = 0;  // all peers write the same
        __syncwarp();
      } else {
        same[b] = peers(digit);
      }
    }
#pragma unroll
    for (int b = 0; b < BATCH; ++b) {  // the last of the peers counts for all
      if (from + b >= ITEMS) break;
      unsigned* const counter = own + digit_of(key[from + b], shift);
      const int last = 31 - __clz(same[b]);
      const unsigned number = __popc(same[b] & up_to_me);
#if BUMP == 1
      old[b] = *(volatile unsigned*)counter;
      __syncwarp();
      if (lane == last) *(volatile unsigned*)counter = old[b] + number;
      __syncwarp();
#else
      old[b] = 0;
      if (lane == last) old[b] = atomicAdd(counter, number);
      __syncwarp();  // the next turn's last lane may be another
#endif
    }
#pragma unroll
    for (int b = 0; b < BATCH; ++b) {
      if (from + b >= ITEMS) break;
      const int last = 31 - __clz(same[b]);
      const unsigned number = __popc(same[b] & up_to_me);
#if BUMP == 0
      old[b] = __shfl_sync(ALL, old[b], last);
#endif
      place(from + b, old[b] + number - 1);
    }
  }
#endif
}
// --8<-- [end:turns]

// --8<-- [start:rank]
// Calls place(i, rank) for each key of the tile: how many of its keys come
// before it, by the digit and then by their order in memory. The first 256
// threads call publish(count) as soon as it is known how many keys have their
// digit. Returns to them how many keys have a digit before theirs. counters:
// zeros.
template <typename P, typename F>
__device__ __forceinline__ unsigned rank_tile(const Key (&key)[ITEMS],
                                              int shift, unsigned left,
                                              unsigned* counters, P publish,
                                              F place) {
  const int digit = threadIdx.x;
  unsigned* const own = counters + (MATCH == 3 ? 0 : threadIdx.x / 32 * DIGITS);
#if EARLY && MATCH != 3
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) atomicAdd(own + digit_of(key[i], shift), 1u);
#else
  unsigned rank[ITEMS];
  take_turns(key, shift, own, left, [&](int i, unsigned r) { rank[i] = r; });
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
#if EARLY && MATCH != 3
  take_turns(key, shift, own, left, place);
#else
  const unsigned mine =
      threadIdx.x / 32 * (32 * ITEMS) + threadIdx.x % 32;  // as in load_tile
#pragma unroll
  for (int i = 0; i < ITEMS; ++i)
    if (MATCH != 3 || left == TILE || mine + 32 * i < left)
      place(i, rank[i] + own[digit_of(key[i], shift)]);
#endif
  return start;
}
// --8<-- [end:rank]
