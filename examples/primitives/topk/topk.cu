// The k largest numbers of each row, the largest first, and their indices.
//
//   topk_select  a block finds a threshold in the row, one pass for each digit
//   topk_lanes   a warp keeps the best 32 in its lanes, for k of at most 32
//   topk_stream  one pass: what is larger than the k-th largest so far is kept;
//                several blocks share a row
#include "select.cuh"

#ifndef VEC
#define VEC 4  // numbers of a load: 4 where rows begin at multiples of 16 bytes
#endif
#ifndef AHEAD
#define AHEAD 4  // steps that are loaded before they are looked at
#endif
#ifndef BLOCKS
#define BLOCKS 2  // of a row
#endif
#ifndef ROOM
#define ROOM 2048  // candidates that stay where they are
#endif

#ifndef SLACK
#define SLACK 256  // candidates that a threshold may leave above k
#endif

#ifndef INLINED
#define INLINED 0  // 1: a copy of prune for each of its calls
#endif
#if INLINED
#define PRUNE __forceinline__
#else
#define PRUNE __noinline__
#endif

constexpr int STEP = 4 * THREADS;      // numbers of a block's step
constexpr int CAPACITY = ROOM + STEP;  // candidates

// --8<-- [start:write]
// The first k words as the result of a row.
__device__ __forceinline__ void write(const Word* words, int k,
                                      const float* row, float* values,
                                      int* indices) {
  for (int i = threadIdx.x; i < k; i += THREADS) {
    const unsigned index = index_of(words[i]);
    values[i] = row[index];  // as it was: -0.0 and NaN keep their bits
    indices[i] = index;
  }
}
// --8<-- [end:write]

// --8<-- [start:select]
// A block for a row: x[row * stride + i], i < n; 1 <= k <= n and k <= size, a
// power of two of at most CAPACITY. values, indices: [rows][k].
extern "C" __global__ void __launch_bounds__(THREADS)
    topk_select(const float* __restrict__ x, long long stride, int n, int k,
                int size, float* __restrict__ values,
                int* __restrict__ indices) {
  extern __shared__ __align__(16) unsigned char memory[];
  Word* const words = reinterpret_cast<Word*>(memory);
  unsigned* const bins = reinterpret_cast<unsigned*>(words + CAPACITY);
  __shared__ unsigned count;
  const float* const row = x + (long long)blockIdx.x * stride;
  const Word least =
      threshold(n, k, k, bins, [&](int i) { return candidate(row[i], i); });
  if (threadIdx.x == 0) count = 0;
  for (int i = threadIdx.x; i < size; i += THREADS) words[i] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += THREADS) {
    const Word word = candidate(row[i], i);
    if (word >= least) words[atomicAdd(&count, 1u)] = word;
  }
  sort_down(words, size);
  write(words, k, row, values + (long long)blockIdx.x * k,
        indices + (long long)blockIdx.x * k);
}
// --8<-- [end:select]

// --8<-- [start:lanes]
// Puts a word into the list of a warp: lane i has the i-th largest.
__device__ __forceinline__ void insert(Word& mine, Word word) {
  const int lane = threadIdx.x % 32;
  const int place = __popc(__ballot_sync(ALL, mine > word));
  const Word up = __shfl_up_sync(ALL, mine, 1);
  if (lane >= place) mine = lane == place ? word : up;
}

// A block for a row, as topk_select; k <= 32, and THREADS <= CAPACITY.
extern "C" __global__ void __launch_bounds__(THREADS)
    topk_lanes(const float* __restrict__ x, long long stride, int n, int k,
               float* __restrict__ values, int* __restrict__ indices) {
  __shared__ Word words[THREADS];
  const float* const row = x + (long long)blockIdx.x * stride;
  Word mine = 0;
  for (int from = 0; from < n; from += THREADS) {
    const int i = from + threadIdx.x;
    const Word word = i < n ? candidate(row[i], i) : 0;
    const Word worst = __shfl_sync(ALL, mine, k - 1);
    unsigned better = __ballot_sync(ALL, word > worst);
    for (; better; better &= better - 1)
      insert(mine, __shfl_sync(ALL, word, __ffs(better) - 1));
  }
  words[threadIdx.x] = mine;
  sort_down(words, THREADS);
  write(words, k, row, values + (long long)blockIdx.x * k,
        indices + (long long)blockIdx.x * k);
}
// --8<-- [end:lanes]

// --8<-- [start:load]
// Four numbers of a row, from `first` on; those from `end` on are -inf.
__device__ __forceinline__ float4 load_four(const float* row, int first,
                                            int end) {
  float4 v = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
  if (VEC == 4 && first < end - 3)
    return *reinterpret_cast<const float4*>(row + first);
  if (first < end) v.x = row[first];
  if (first < end - 1) v.y = row[first + 1];
  if (first < end - 2) v.z = row[first + 2];
  if (first < end - 3) v.w = row[first + 3];
  return v;
}
// --8<-- [end:load]

// --8<-- [start:prune]
// Leaves the best k of *count words, and of the others as many as `enough`
// allows. Returns a word: the others are smaller. One copy of this code serves
// three calls.
static __device__ PRUNE Word prune(Word* words, unsigned* count, unsigned* bins,
                                   int k, int enough) {
  constexpr int EACH = (CAPACITY + THREADS - 1) / THREADS;
  const int n = *count;
  const Word least =
      threshold(n, k, enough, bins, [&](int i) { return words[i]; });
  Word mine[EACH];
#pragma unroll
  for (int j = 0; j < EACH; ++j) {
    const int i = threadIdx.x + j * THREADS;
    mine[j] = i < n ? words[i] : 0;
  }
  __syncthreads();
  if (threadIdx.x == 0) *count = 0;
  __syncthreads();
#pragma unroll
  for (int j = 0; j < EACH; ++j)
    if (mine[j] >= least && mine[j] > 0) words[atomicAdd(count, 1u)] = mine[j];
  __syncthreads();
  return least;
}
// --8<-- [end:prune]

// What a block has found so far in its part of a row.
struct Best {
  Word* words;  // CAPACITY
  unsigned* bins;
  unsigned* count;  // in shared memory
  float limit;      // k words are no smaller than this number ...
  bool closed;      // ... or are NaN, and no other comes in

  __device__ __forceinline__ void prune(int k, int enough) {
    const Word least = ::prune(words, count, bins, k, enough);
    limit = number_of(least >> 32);
    closed = (unsigned)(least >> 32) > order(INFINITY);
  }

  // --8<-- [start:offer]
  // A number that comes after all others of this part: where it equals the
  // limit, k others are better. A NaN comes in: it is not <= limit. Returns how
  // many words there are now, or 0 where it stays out.
  __device__ __forceinline__ unsigned offer(float x, int index, int end) {
    if (x <= limit || index >= end) return 0;
    const unsigned at = atomicAdd(count, 1u);
    words[at] = candidate(x, index);
    return at + 1;
  }
  // --8<-- [end:offer]
};

// --8<-- [start:stream]
// BLOCKS blocks for a row. k <= STEP: the first step brings k words, so no -inf
// has to come in later. size: a power of two that is no less than k, and size +
// SLACK <= ROOM, BLOCKS * size <= CAPACITY. lists: [rows][BLOCKS][size] words,
// and tickets: [rows], zeros before the first launch.
extern "C" __global__ void __launch_bounds__(THREADS)
    topk_stream(const float* __restrict__ x, long long stride, int n, int k,
                int size, float* __restrict__ values, int* __restrict__ indices,
                Word* __restrict__ lists, unsigned* __restrict__ tickets) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ unsigned count;
  Word* const words = reinterpret_cast<Word*>(memory);
  Best best = {words, reinterpret_cast<unsigned*>(words + CAPACITY), &count,
               -INFINITY, false};
  const int of_row = blockIdx.x / BLOCKS, part = blockIdx.x % BLOCKS;
  const float* const row = x + (long long)of_row * stride;
  const int each = (n / (4 * BLOCKS) + 1) * 4;  // a multiple of 4
  const int begin = min((long long)part * each, (long long)n);
  const int end = min((long long)begin + each, (long long)n);
  const int mine = 4 * threadIdx.x;

  float4 ahead[AHEAD];
#pragma unroll
  for (int a = 0; a < AHEAD; ++a)
    ahead[a] = load_four(row, begin + a * STEP + mine, end);
  for (int from = begin; from < end; from += AHEAD * STEP) {
#pragma unroll
    for (int a = 0; a < AHEAD; ++a) {
      const int at = from + a * STEP;
      if (at >= end) break;
      const float4 v = ahead[a];
      const int index = at + mine;
      ahead[a] =
          load_four(row, min(index, end - AHEAD * STEP) + AHEAD * STEP, end);
      if (at == begin) {  // the first step comes in as it is
        const float four[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (index + j < end) words[mine + j] = candidate(four[j], index + j);
        const int came = min(STEP, end - begin);
        if (threadIdx.x == 0) count = came;
        __syncthreads();
        if (came >= k + SLACK) best.prune(k, k + SLACK);
        continue;
      }
      unsigned have = 0;
      const float limit = best.limit;
      if (!best.closed &&
          !(v.x <= limit && v.y <= limit && v.z <= limit && v.w <= limit)) {
        have =
            max(best.offer(v.x, index, end), best.offer(v.y, index + 1, end));
        have = max(have, best.offer(v.z, index + 2, end));
        have = max(have, best.offer(v.w, index + 3, end));
      }
      if (__syncthreads_or(have > ROOM)) best.prune(k, k + SLACK);
    }
  }
  if (begin == end && threadIdx.x == 0) count = 0;
  __syncthreads();
  if (count > size) best.prune(k, size);
  // --8<-- [end:stream]

  // --8<-- [start:merge]
  // The lists of the row's blocks, one behind the other, filled up with zeros.
  const int have = count;
  Word* const all = words;
  if (BLOCKS > 1) {
    __shared__ bool last;
    Word* const list = lists + (size_t)of_row * BLOCKS * size;
    for (int i = threadIdx.x; i < size; i += THREADS)
      __stcg(list + part * size + i, i < have ? words[i] : 0);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
      last = atomicInc(tickets + of_row, BLOCKS - 1) == BLOCKS - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (int i = threadIdx.x; i < BLOCKS * size; i += THREADS)
      all[i] = __ldcg(list + i);
  } else {
    for (int i = have + threadIdx.x; i < size; i += THREADS) all[i] = 0;
  }
  sort_down(all, BLOCKS * size);
  write(all, k, row, values + (long long)of_row * k,
        indices + (long long)of_row * k);
  // --8<-- [end:merge]
}
