// Selection in a block: the k largest of many, and their order.
//
//   order      an unsigned number that compares as the float does
//   candidate  a number and its index in one word: the larger word is better
//   threshold  the smallest word of the best ones, digit by digit
//   sort_down  sorts words in shared memory, the largest first
#pragma once

#ifndef THREADS
#define THREADS 1024
#endif
#ifndef DIGIT_BITS
#define DIGIT_BITS 11
#endif

using Word = unsigned long long;
constexpr unsigned ALL = 0xffffffffu;
constexpr int BINS = 1 << DIGIT_BITS;
constexpr int PER = BINS > THREADS ? BINS / THREADS : 1;  // bins of a thread
static_assert(THREADS % 32 == 0 && THREADS <= 1024, "32 warps at most");
static_assert(BINS % PER == 0 && BINS / PER <= THREADS, "a thread for a bin");

// --8<-- [start:order]
// Unsigned numbers that compare as floats do: NaN is the largest, as in
// PyTorch, and -0.0 equals 0.0.
__device__ __forceinline__ unsigned order(float x) {
  const unsigned bits = __float_as_uint(x + 0.0f);  // -0.0 becomes 0.0
  if (x != x) return ALL;
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float number_of(unsigned order) {
  return __uint_as_float(order >> 31 ? order & 0x7fffffffu : ~order);
}

// Of equal numbers the one with the smaller index is better, so no two words
// are equal.
__device__ __forceinline__ Word candidate(float x, unsigned index) {
  return (Word)order(x) << 32 | ~index;
}
__device__ __forceinline__ unsigned index_of(Word word) {
  return ~(unsigned)word;
}
// --8<-- [end:order]

__device__ __forceinline__ unsigned warp_scan(unsigned sum) {
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    const unsigned up = __shfl_up_sync(ALL, sum, by);
    if (threadIdx.x % 32 >= by) sum += up;
  }
  return sum;
}

struct Bin {
  unsigned number, above, count;  // above: how many words lie in larger bins
};

// --8<-- [start:find]
// The bin in which the `need`-th largest word lies.
__device__ __forceinline__ Bin find_bin(const unsigned* bins, unsigned need) {
  __shared__ unsigned of_warp[32];
  __shared__ Bin found;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first =
      BINS - 1 - threadIdx.x * PER;  // the largest bin comes first
  unsigned own = 0;
  if (first >= 0) {
#pragma unroll
    for (int j = 0; j < PER; ++j) own += bins[first - j];
  }
  const unsigned scan = warp_scan(own);
  if (lane == 31) of_warp[warp] = scan;
  __syncthreads();
  const unsigned warps = warp_scan(lane < THREADS / 32 ? of_warp[lane] : 0);
  const unsigned earlier = __shfl_sync(ALL, warps, (warp + 31) % 32);
  unsigned above = scan - own + (warp ? earlier : 0);
  if (above < need && need <= above + own) {
    for (int j = 0; j < PER; ++j) {
      const unsigned count = bins[first - j];
      if (need <= above + count) {
        found = {(unsigned)(first - j), above, count};
        break;
      }
      above += count;
    }
  }
  __syncthreads();
  return found;
}
// --8<-- [end:find]

// --8<-- [start:threshold]
// A word T, so that of the n different words get(0), get(1) ... at least k are
// no smaller than T, and at most `enough`: if enough is k, exactly k. 1 <= k <=
// n. It takes digit after digit, from the highest, and stops when the last bin
// holds few words. bins: BINS, in shared memory. Begins and ends with a
// barrier.
template <typename F>
__device__ __forceinline__ Word threshold(int n, unsigned k, unsigned enough,
                                          unsigned* bins, F get) {
  Word prefix = 0;
  unsigned taken = 0;  // words above the bin
  for (int end = 64;; end -= DIGIT_BITS) {
    const int shift = end > DIGIT_BITS ? end - DIGIT_BITS : 0;
    const unsigned mask = (1u << (end - shift)) - 1;
    __syncthreads();
    for (int i = threadIdx.x; i < BINS; i += THREADS) bins[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += THREADS) {
      const Word word = get(i);
      if (end == 64 || (word ^ prefix) >> end == 0)
        atomicAdd(bins + ((unsigned)(word >> shift) & mask), 1u);
    }
    __syncthreads();
    const Bin bin = find_bin(bins, k - taken);
    prefix |= (Word)bin.number << shift;
    taken += bin.above;
    if (taken + bin.count <= enough || shift == 0) return prefix;
  }
}
// --8<-- [end:threshold]

// --8<-- [start:sort]
// Sorts `size` words, a power of two, the largest first: a bitonic sort. Begins
// and ends with a barrier.
__device__ __forceinline__ void sort_down(Word* words, int size) {
  __syncthreads();
  for (int run = 2; run <= size; run *= 2)
    for (int apart = run / 2; apart > 0; apart /= 2) {
      for (int i = threadIdx.x; i < size / 2; i += THREADS) {
        const int a = i / apart * (2 * apart) + i % apart, b = a + apart;
        const Word x = words[a], y = words[b];
        if ((x < y) == ((a & run) == 0)) words[a] = y, words[b] = x;
      }
      __syncthreads();
    }
}
// --8<-- [end:sort]
