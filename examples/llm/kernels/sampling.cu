// From logits to tokens, as `sampler.sample` defines them: the most probable
// token, or a random one of all, of the top k, or of the most probable tokens
// that have a probability of p together.
//
//   Row      a row of logits, and how a block finds thresholds in it
//   sample   the kernel
//
// requires: sm_80
#include "ptx/ticket.cuh"
#include "sampling.cuh"

constexpr int BINS = 2048, CAPACITY = 8192;

// A row of logits, and a block that looks for thresholds in it.
// THREADS: of the block, a power of two of at most 1024.
// VEC: logits that one load brings, 4 or 1.
template <int THREADS, int VEC>
struct Row {
  const float* __restrict__ logits;
  int vocab;
  float temperature;
  float most;  // the largest logit, over the temperature
  int listed;  // elements in the list; -1: there is no list
  unsigned* low;
  unsigned* high;  // BINS sums, in two halves
  float* list_x;
  int* list_token;

  // --8<-- [start:four]
  // Calls f(token, x) for four tokens at a time, x[4], between the fours
  // `first` and `end`. All threads call f equally often, even beyond the end.
  // Four loads are under way at once.
  template <typename F>
  __device__ __forceinline__ void fours(int first, int end, F f) const {
    for (int at = first; at < end; at += 4 * THREADS) {
      float x[4][4];
#pragma unroll
      for (int b = 0; b < 4; ++b) {
        const int four = at + b * THREADS + threadIdx.x, token = four * 4;
        float4 v = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
        if (four < end) {
          if constexpr (VEC == 4) {
            v = *reinterpret_cast<const float4*>(logits + token);
          } else {
            v.x = logits[token];
            if (token + 1 < vocab) v.y = logits[token + 1];
            if (token + 2 < vocab) v.z = logits[token + 2];
            if (token + 3 < vocab) v.w = logits[token + 3];
          }
        }
        x[b][0] = v.x, x[b][1] = v.y, x[b][2] = v.z, x[b][3] = v.w;
      }
#pragma unroll
      for (int b = 0; b < 4; ++b) {
        if (at + b * THREADS >= end) break;
#pragma unroll  // + 0: -0 becomes 0, which it equals
        for (int j = 0; j < 4; ++j) x[b][j] = x[b][j] / temperature + 0.0f;
        f((at + b * THREADS + (int)threadIdx.x) * 4, x[b]);
      }
    }
  }
  // --8<-- [end:four]

  // Calls f(x, token) for the tokens in the list, or for all.
  template <typename F>
  __device__ __forceinline__ void visit(F f) const {
    if (listed >= 0) {
      for (int i = threadIdx.x; i < listed; i += THREADS)
        f(list_x[i], list_token[i]);
    } else {
      fours(0, (vocab + 3) / 4, [&](int token, const float (&x)[4]) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (token + j < vocab) f(x[j], token + j);
      });
    }
  }

  __device__ __forceinline__ void clear() {
    __syncthreads();
    for (int i = threadIdx.x; i < BINS; i += THREADS) low[i] = high[i] = 0;
    __syncthreads();
  }

  // Sums are whole numbers, so they do not depend on the order of the threads.
  __device__ __forceinline__ void add(int bin, Mass mass) {
    const unsigned more = (unsigned)mass;
    const bool carry = atomicAdd(&low[bin], more) > ~more;
    const unsigned rest = (unsigned)(mass >> 32) + carry;
    if (rest) atomicAdd(&high[bin], rest);
  }

  // --8<-- [start:find]
  // Returns the bin in which the sum of bins, from the first on, reaches
  // `target`, and sets `before` to the sum before it. share: if positive, the
  // target is this share of the total. If the total is less, returns the last
  // bin.
  __device__ __forceinline__ int find(Mass& target, Mass& before, float share) {
    constexpr int PER = BINS / THREADS;
    __shared__ Mass of_warp[32], sum_before;
    __shared__ int found;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    __syncthreads();
    Mass bins[PER], own = 0;
#pragma unroll
    for (int i = 0; i < PER; ++i) {
      const int bin = threadIdx.x * PER + i;
      bins[i] = (Mass)high[bin] << 32 | low[bin];
      own += bins[i];
    }
    const Mass scan = warp_scan(own);
    if (lane == 31) of_warp[warp] = scan;
    __syncthreads();
    const Mass warps = warp_scan(lane < THREADS / 32 ? of_warp[lane] : 0);
    const Mass total = __shfl_sync(~0u, warps, 31);
    const Mass earlier = __shfl_sync(~0u, warps, (warp + 31) % 32);
    if (share > 0) target = max(1.0, ceil((double)share * (double)total));
    before = total;
    if (target > total) return BINS - 1;
    Mass sum = scan - own + (warp > 0 ? earlier : 0);
#pragma unroll
    for (int i = 0; i < PER; ++i) {
      if (sum < target && target <= sum + bins[i])
        found = threadIdx.x * PER + i, sum_before = sum;
      sum += bins[i];
    }
    __syncthreads();
    before = sum_before;
    return found;
  }
  // --8<-- [end:find]

  // --8<-- [start:select]
  // Returns the largest threshold (as `ordered` has it, `least` or more) that
  // keeps k elements, or with WEIGHTED the share p of the sum of exp(x - most)
  // of all that `least` keeps. These sums count in units of 2^-40.
  template <bool WEIGHTED>
  __device__ __forceinline__ unsigned select(unsigned least, int k, float p) {
    __shared__ int count;
    const auto mass = [&](float x) -> Mass {
      if (!WEIGHTED) return 1;
      return __float2ull_rn(expf(x - most) * 0x1p40f);
    };
    // First, bins of equal width, 1/64 of a logit, the most probable first:
    // many bins, so that threads seldom wait for each other. The last bin has
    // all the rest; its count is not needed.
    const auto bin_of = [&](float x) {
      return (int)fminf((most - x) * (64 * temperature), BINS - 1);
    };
    Mass target = k, before, rest = 0;
    clear();
    if (threadIdx.x == 0) count = 0;
    visit([&](float x, int) {
      if (ordered(x) < least) return;
      const int bin = bin_of(x);
      if (bin < BINS - 1)
        add(bin, mass(x));
      else if (WEIGHTED)
        rest += mass(x);
    });
    if (rest > 0) add(BINS - 1, rest);
    const int bin = find(target, before, WEIGHTED ? p : 0.0f);
    // From here on only the bins up to this one matter: usually few elements.
    if (listed < 0) {
      visit([&](float x, int token) {
        if (ordered(x) < least || bin_of(x) > bin) return;
        const int at = atomicAdd(&count, 1);
        if (at < CAPACITY) list_x[at] = x, list_token[at] = token;
      });
      __syncthreads();
      if (count <= CAPACITY) listed = count;
    }
    // Then the threshold's bits, from the highest: 11, 11 and 10 at a time.
    unsigned known = 0, value = 0;
    for (int shift = 21; shift >= 0; shift = shift == 21 ? 10 : shift - 10) {
      const unsigned digits = shift > 0 ? 2047 : 1023;
      target -= before;
      clear();
      visit([&](float x, int) {
        const unsigned key = ordered(x);
        if (key >= least && bin_of(x) == bin && (key & known) == value)
          add(BINS - 1 - (key >> shift & digits), mass(x));
      });
      value |= (BINS - 1 - find(target, before, 0.0f) & digits) << shift;
      known |= digits << shift;
    }
    return value;
  }
  // --8<-- [end:select]
};

// tokens[r] for each row r of logits; rows are `stride` words apart, and with
// VEC = 4 begin at multiples of 16 bytes. THREADS and VEC: see Row.
//
// Each row has its own parameters: temperature (0: the most probable token),
// top_k (0: all), top_p, seed, request and position; the last three and the
// token determine the random numbers. One block computes a row with top_k or
// top_p, `parts` blocks share any other row; the result is the same. best,
// tickets: a 0 for each row. Grid: rows * parts.
// --8<-- [start:kernel]
template <int THREADS, int VEC>
__global__ void __launch_bounds__(THREADS, 1024 / THREADS)
    sample(const float* __restrict__ logits, long long stride, int vocab,
           const float* __restrict__ temperature, const int* __restrict__ top_k,
           const float* __restrict__ top_p,
           const unsigned long long* __restrict__ seed,
           const int* __restrict__ request, const int* __restrict__ position,
           int* __restrict__ tokens, int parts,
           unsigned long long* __restrict__ best,
           unsigned* __restrict__ tickets) {
  extern __shared__ uint4 shared[];
  const int r = blockIdx.x / parts, part = blockIdx.x % parts;
  const bool greedy = temperature[r] == 0;
  const int k = top_k[r];
  const float p = top_p[r];
  const bool some = !greedy && ((k > 0 && k < vocab) || p < 1);
  if (some && part > 0) return;
  unsigned* const words = reinterpret_cast<unsigned*>(shared);
  Row<THREADS, VEC> row = {logits + r * stride,
                           vocab,
                           greedy ? 1.0f : temperature[r],
                           0.0f,
                           -1,
                           words,
                           words + BINS,
                           reinterpret_cast<float*>(words + 2 * BINS),
                           reinterpret_cast<int*>(words) + 2 * BINS + CAPACITY};
  const int fours = (vocab + 3) / 4;
  const Mass none = (Mass)ordered(-INFINITY) << 32;
  unsigned least = 0;
  if (some) {
    Mass most = none;
    row.visit([&](float x, int token) { most = max(most, packed(x, token)); });
    row.most = from_ordered(block_max<THREADS>(most) >> 32);
    if (k > 0 && k < vocab) least = row.template select<false>(least, k, 1);
    if (p < 1) least = row.template select<true>(least, 0, p);
  }
  const uint2 key = {(unsigned)seed[r], (unsigned)(seed[r] >> 32)};
  const auto words_of = [&](int token) {
    return philox(make_uint4(token / 4, position[r], request[r], 0), key);
  };
  Mass found = none;
  if (row.listed >= 0) {
    row.visit([&](float x, int token) {
      if (ordered(x) < least) return;
      const float v = uniform(word_of(words_of(token), token % 4));
      found = max(found, packed(x + gumbel(v), token));
    });
  } else {
    // --8<-- [start:skip]
    // Computes logarithms only for tokens that may still win in this warp:
    // since -log1p(-v) >= v, x + gumbel(v) is below `reached` where v is above
    // exp(x - reached). The slack is far more than all roundings.
    const int each = some ? fours : (fours + parts - 1) / parts;
    const int first = part * each, end = min(fours, first + each);
    float reached = -INFINITY;
    row.fours(first, end, [&](int token, const float (&x)[4]) {
      uint4 four = {};
      if (!greedy) four = words_of(token);
      const float slack = 0.01f + fabsf(reached) * 0x1p-22f;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (token + j >= vocab || ordered(x[j]) < least) continue;
        float score = x[j];
        if (!greedy) {
          const float v = uniform(word_of(four, j));
          if (v > __expf(x[j] - reached + slack)) continue;
          score += gumbel(v);
        }
        found = max(found, packed(score, token + j));
      }
      if (!greedy)
        reached = from_ordered(__reduce_max_sync(~0u, (unsigned)(found >> 32)));
    });
    // --8<-- [end:skip]
  }
  found = block_max<THREADS>(found);
  if (threadIdx.x > 0) return;
  if (!some && parts > 1) {
    atomicMax(&best[r], found);
    if (!last_to_arrive(&tickets[r], parts)) return;
    found = atomicExch(&best[r], 0ULL);
  }
  tokens[r] = min(0xFFFFFFFFu - (unsigned)found, (unsigned)vocab - 1);
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance sample<1024,4>
// @instance sample<1024,1>
// @instance sample<512,4>
// @instance sample<512,1>
