// Radix sort that reads and writes the keys once for each digit.
//
//   count_digits  how often each digit occurs, for all passes at once
//   first_places  where the keys of each digit begin
//   sweep         one pass: by a decoupled look-back, a tile learns how many
//                 keys of each digit lie in the tiles before it
#include "radix.cuh"

#ifndef WINDOW
#define WINDOW 8  // tiles that a look-back asks at once
#endif
#ifndef COLUMNS
#define COLUMNS 1  // 1: lanes count in banks of their own, 2: with words of
#endif             // 32 bits, 0: all in one list
#ifndef TOGETHER
#define TOGETHER 0  // 1: values take places beside their keys, in shared
#endif              // memory of their own; 0: those of the keys, after them
#ifndef COUNT_THREADS
#define COUNT_THREADS 1024
#endif

constexpr int VECTOR = 16 / sizeof(Key), LOADS = 4;
constexpr int ROWS = PASSES * DIGITS / (COLUMNS == 1 ? 2 : 1);
// Turns after which a counter of 16 bits could overflow.
constexpr int MOST_TURNS = 65535 / (COUNT_THREADS / 32 * VECTOR * LOADS);

struct alignas(16) Vector {
  Key at[VECTOR];
};

// --8<-- [start:count]
// Counters of a block, in shared memory. With COLUMNS a lane has its own
// column, so that no two lanes of a warp meet in a bank: a word for a digit, or
// (COLUMNS == 1) 16 bits, two digits in a word.
__device__ __forceinline__ void count_key(unsigned* words, Key key) {
  const Key bits = ordered(key);
  [[maybe_unused]] const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (int pass = 0; pass < PASSES; ++pass) {
    const unsigned digit = (unsigned)(bits >> 8 * pass) & (DIGITS - 1);
#if COLUMNS == 2
    atomicAdd(words + (pass * DIGITS + digit) * 32 + lane, 1u);
#elif COLUMNS
    atomicAdd(words + (pass * (DIGITS / 2) + digit / 2) * 32 + lane,
              digit & 1 ? 1u << 16 : 1u);
#else
    atomicAdd(words + pass * DIGITS + digit, 1u);
#endif
  }
}

// Adds the block's counters to those of all, and sets them to 0.
__device__ __forceinline__ void flush_counts(unsigned* words, Count* counts) {
  __syncthreads();
#if COLUMNS
  for (int row = threadIdx.x / 32; row < ROWS; row += COUNT_THREADS / 32) {
    const unsigned word = words[row * 32 + threadIdx.x % 32];
    words[row * 32 + threadIdx.x % 32] = 0;
#if COLUMNS == 2
    unsigned sum = word;
#pragma unroll
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(ALL, sum, by);
    if (threadIdx.x % 32 == 0 && sum) atomicAdd(counts + row, (Count)sum);
#else
    unsigned even = word & 0xffff, odd = word >> 16;
#pragma unroll
    for (int by = 16; by > 0; by /= 2) {
      even += __shfl_xor_sync(ALL, even, by);
      odd += __shfl_xor_sync(ALL, odd, by);
    }
    if (threadIdx.x % 32 == 0 && even) atomicAdd(counts + 2 * row, (Count)even);
    if (threadIdx.x % 32 == 0 && odd)
      atomicAdd(counts + 2 * row + 1, (Count)odd);
#endif
  }
#else
  for (int i = threadIdx.x; i < PASSES * DIGITS; i += COUNT_THREADS) {
    if (words[i]) atomicAdd(counts + i, (Count)words[i]);
    words[i] = 0;
  }
#endif
  __syncthreads();
}

// counts[pass][digit] += how many of the n keys have this digit; the sum of all
// before is 0.
extern "C" __global__ void __launch_bounds__(COUNT_THREADS)
    count_digits(const Key* __restrict__ keys, Count n,
                 Count* __restrict__ counts) {
  extern __shared__ __align__(16) unsigned char memory[];
  unsigned* const words = reinterpret_cast<unsigned*>(memory);
  constexpr int WORDS = COLUMNS ? ROWS * 32 : PASSES * DIGITS;
  for (int i = threadIdx.x; i < WORDS; i += COUNT_THREADS) words[i] = 0;
  __syncthreads();
  // Keys before the first multiple of 16 bytes, and behind the last.
  const Count odd = (16 - (size_t)keys % 16) % 16 / sizeof(Key);
  const Count head = odd < n ? odd : n;
  const Count vectors = (n - head) / VECTOR, tail = head + vectors * VECTOR;
  if (blockIdx.x == 0) {
    if (threadIdx.x < head) count_key(words, keys[threadIdx.x]);
    if (threadIdx.x < n - tail) count_key(words, keys[tail + threadIdx.x]);
  }
  flush_counts(words, counts);  // of any block, so that turns count from 0
  const Vector* const wide = reinterpret_cast<const Vector*>(keys + head);
  const Count stride = (Count)gridDim.x * (COUNT_THREADS * LOADS);
  int turns = 0;
  for (Count at = (Count)blockIdx.x * (COUNT_THREADS * LOADS); at < vectors;
       at += stride) {
    Vector v[LOADS];
    const Count first = at + threadIdx.x;
#pragma unroll
    for (int k = 0; k < LOADS; ++k)
      if (first + k * COUNT_THREADS < vectors)
        v[k] = wide[first + k * COUNT_THREADS];
#pragma unroll
    for (int k = 0; k < LOADS; ++k)
      if (first + k * COUNT_THREADS < vectors) {
#pragma unroll
        for (int j = 0; j < VECTOR; ++j) count_key(words, v[k].at[j]);
      }
    if (COLUMNS == 1 && ++turns == MOST_TURNS)
      flush_counts(words, counts), turns = 0;
  }
  flush_counts(words, counts);
}
// --8<-- [end:count]

// --8<-- [start:first]
// places[pass][digit] = how many keys have a digit before this one. A block for
// a pass. The counts are 0 afterwards, for the next sort.
extern "C" __global__ void __launch_bounds__(THREADS)
    first_places(Count* __restrict__ counts, Count* __restrict__ places) {
  const int at = blockIdx.x * DIGITS + threadIdx.x;
  const bool mine = threadIdx.x < DIGITS;
  const Count count = mine ? counts[at] : 0;
  const Count place = sum_before(count);
  if (mine) places[at] = place, counts[at] = 0;
}
// --8<-- [end:first]

// --8<-- [start:look-back]
// What a tile says about a digit, in one word: nothing yet (0), how many of its
// own keys have it, or how many up to and with this tile.
constexpr Count OWN = Count(1) << (8 * sizeof(Count) - 2), UP_TO_HERE = 2 * OWN;
constexpr Count NUMBER = OWN - 1;

__device__ __forceinline__ Count read(const Count* state) {
  return *(const volatile Count*)state;  // from L2, again and again
}
__device__ __forceinline__ void say(Count* state, Count what) {
  *(volatile Count*)state = what;
}

// How many keys of this thread's digit lie in the tiles before `tile`. WINDOW
// states are asked for at once; those before the first tile stand for 0 keys.
__device__ __forceinline__ Count look_back(const Count* states, int tile) {
  Count sum = 0;
  for (int at = tile - 1;; at -= WINDOW) {
    Count said[WINDOW];
#pragma unroll
    for (int w = 0; w < WINDOW; ++w)
      said[w] = at < w ? UP_TO_HERE
                       : read(states + (size_t)(at - w) * DIGITS + threadIdx.x);
#pragma unroll
    for (int w = 0; w < WINDOW; ++w) {
      while (said[w] == 0)
        said[w] = read(states + (size_t)(at - w) * DIGITS + threadIdx.x);
      sum += said[w] & NUMBER;
      if (said[w] & UP_TO_HERE) return sum;
    }
  }
}
// --8<-- [end:look-back]

// --8<-- [start:sweep]
// One pass: keys_out = the keys in the order of the digit at `shift`, equal
// digits as before. A block for a tile; it draws the number of its tile, so the
// tiles before it have begun. places: of this pass. states: [tiles][256],
// zeros; other: those of the pass before, which are set to 0. ticket: 0, and
// that of the other pass.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    sweep(const Key* __restrict__ keys, Key* __restrict__ keys_out,
          const Value* __restrict__ values, Value* __restrict__ values_out,
          Count n, int shift, const Count* __restrict__ places,
          Count* __restrict__ states, Count* __restrict__ other,
          unsigned* __restrict__ ticket, unsigned* __restrict__ other_ticket) {
  extern __shared__ __align__(16) unsigned char memory[];
  Key* const staged = reinterpret_cast<Key*>(memory);
  Count* const to = reinterpret_cast<Count*>(staged + TILE);
  unsigned* const counters = reinterpret_cast<unsigned*>(to + DIGITS);
#if PAIRS && TOGETHER
  Value* const staged_values = reinterpret_cast<Value*>(counters + COUNTERS);
#elif PAIRS
  Value* const staged_values = reinterpret_cast<Value*>(staged);
#endif
  __shared__ unsigned drawn;
  if (threadIdx.x == 0) drawn = atomicAdd(ticket, 1u);
  clear_counters(counters);
  __syncthreads();
  const int tile = drawn;
  if (tile == 0 && threadIdx.x == 0) *other_ticket = 0;
  const Count first = (Count)tile * TILE;
  if (first >= n) return;  // the ticket was not 0
  const unsigned left = n - first < TILE ? (unsigned)(n - first) : TILE;
  Key key[ITEMS];
  load_tile(keys + first, left, LAST, key);
#if PAIRS && TOGETHER
  Value value[ITEMS];
  load_tile(values + first, left, 0u, value);
#elif PAIRS
  unsigned ranks[(ITEMS + 1) / 2] = {};  // two in a word
  static_assert(TILE <= 1 << 16, "a rank has 16 bits");
#endif
  Count* const state = states + (size_t)tile * DIGITS + threadIdx.x;
  Count place = 0;
  if (threadIdx.x < DIGITS) {
    other[(size_t)tile * DIGITS + threadIdx.x] = 0;
    place = places[threadIdx.x];
  }
  unsigned count = 0;
  const unsigned start = rank_tile(
      key, shift, left, counters,
      [&](unsigned keys_of_digit) {
        count = keys_of_digit;
        say(state, (tile ? OWN : UP_TO_HERE) + count);
      },
      [&](int i, unsigned r) {
        staged[r] = key[i];
#if PAIRS && TOGETHER
        staged_values[r] = value[i];
#elif PAIRS
        ranks[i / 2] |= r << i % 2 * 16;
#endif
      });
  if (threadIdx.x < DIGITS) {
    const Count before = look_back(states, tile);
    if (tile) say(state, UP_TO_HERE + before + count);
    to[threadIdx.x] = place + before - start;
  }
  __syncthreads();
#if PAIRS && !TOGETHER
  // --8<-- [start:values]
  unsigned digits[(ITEMS + 3) / 4] = {};  // four in a word
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const unsigned at = threadIdx.x + i * THREADS;
    const Key moved = staged[at];
    const unsigned digit = digit_of(moved, shift);
    digits[i / 4] |= digit << i % 4 * 8;
    if (left == TILE || at < left) keys_out[to[digit] + at] = moved;
  }
  Value value[ITEMS];
  load_tile(values + first, left, 0u, value);
  __syncthreads();  // all keys have been read
#pragma unroll
  for (int i = 0; i < ITEMS; ++i)
    staged_values[ranks[i / 2] >> i % 2 * 16 & 0xffff] = value[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const unsigned at = threadIdx.x + i * THREADS;
    const unsigned digit = digits[i / 4] >> i % 4 * 8 & 255;
    if (left == TILE || at < left)
      values_out[to[digit] + at] = staged_values[at];
  }
  // --8<-- [end:values]
#else
  auto write = [&](unsigned at) {
    const Key moved = staged[at];
    const Count there = to[digit_of(moved, shift)] + at;
    keys_out[there] = moved;
#if PAIRS
    values_out[there] = staged_values[at];
#endif
  };
  if (left == TILE) {
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) write(threadIdx.x + i * THREADS);
  } else {
    for (unsigned at = threadIdx.x; at < left; at += THREADS) write(at);
  }
#endif
}
// --8<-- [end:sweep]
