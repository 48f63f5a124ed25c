// Attention of one query per sequence over keys and values in blocks, in the
// scheme of vLLM's paged attention kernels (csrc/attention at v0.6.3), written
// anew. Each step of the scheme is a template argument, so that it can be left
// out.
//
//   place_of_key, place_of_value   where an element lies in the cache
//   store                          keys and values into the cache
//   paged                          the kernel, for all keys or for a part
//   join                           the second launch: all parts become one
//
// requires: sm_80
// expect: spills (a word of one instance, 128 elements with all parts of the scheme, on sm_86 and sm_89)
#include <cuda_bf16.h>

// --8<-- [start:sizes]
using bf16 = __nv_bfloat16;
constexpr int THREADS = 128, WARPS = THREADS / 32;
constexpr int X = 8;  // elements of 16 bytes

// N elements that a thread loads at a time, if they begin at a multiple of the
// largest power of two in their size, up to 16 bytes.
constexpr int align_of(int size) {
  return (size & -size) < 16 ? size & -size : 16;
}
template <class T, int N>
struct alignas(align_of(sizeof(T) * N)) Pack {
  T at[N];
};
// --8<-- [end:sizes]

// --8<-- [start:layout]
// Where element e of a key is, in the cache of a KV head: head = block *
// kv_heads + kv_head. In chunks: [blocks, kv_heads, D / 8, BLOCK, 8]. In rows:
// [blocks, BLOCK, kv_heads, D], the cache of decode.cu.
template <int D, int BLOCK, bool CHUNKS>
__device__ long long place_of_key(int block, int kv_heads, int kv_head,
                                  int slot, int e) {
  if (CHUNKS) {
    const long long head = (long long)block * kv_heads + kv_head;
    return ((head * (D / X) + e / X) * BLOCK + slot) * X + e % X;
  }
  return (((long long)block * BLOCK + slot) * kv_heads + kv_head) * D + e;
}
// --8<-- [end:layout]

// --8<-- [start:layout-of-values]
// The same of a value. In columns: [blocks, kv_heads, D, BLOCK].
template <int D, int BLOCK, bool COLUMNS>
__device__ long long place_of_value(int block, int kv_heads, int kv_head,
                                    int slot, int e) {
  if (COLUMNS) {
    const long long head = (long long)block * kv_heads + kv_head;
    return (head * D + e) * BLOCK + slot;
  }
  return place_of_key<D, BLOCK, false>(block, kv_heads, kv_head, slot, e);
}
// --8<-- [end:layout-of-values]

// --8<-- [start:held]
// The element of a value that is the i-th of a lane: with columns a row of the
// block, of which PER_ROW lanes have 8 tokens each; else D / 32 side by side.
template <int D, int BLOCK, bool COLUMNS>
struct Held {
  static constexpr int VEC = BLOCK < X ? BLOCK : X;  // tokens of a load
  static constexpr int PER_ROW = COLUMNS ? BLOCK / VEC : 1;
  static constexpr int COUNT = D * PER_ROW / 32;
  static __device__ int element(int lane, int i) {
    return COLUMNS ? lane / PER_ROW + i * (32 / PER_ROW) : lane * COUNT + i;
  }
};
// --8<-- [end:held]

// For all threads of the block: the sum or the largest of their numbers.
// --8<-- [start:of-block]
template <bool LARGEST>
__device__ float of_block(float x, float* of_warp) {
  for (int away = 16; away > 0; away /= 2) {
    const float other = __shfl_xor_sync(~0u, x, away);
    x = LARGEST ? fmaxf(x, other) : x + other;
  }
  __syncthreads();  // nobody reads of_warp anymore
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  x = of_warp[0];
  for (int warp = 1; warp < WARPS; ++warp)
    x = LARGEST ? fmaxf(x, of_warp[warp]) : x + of_warp[warp];
  return x;
}
// --8<-- [end:of-block]

// out[i, h] = softmax(scale q[i, h] K^T) V over the keys of sequence i, and lse
// the natural logarithm of the sum of exponentials; length 0 gives zeros and
// -inf.
//
// D: elements of a head, a multiple of 32. BLOCK: tokens of a block, 1 to 32,
// a power of two. CHUNKS, COLUMNS: how keys and values lie. GROUP: threads of a
// key. PART: keys of a part, a multiple of BLOCK; 0: all keys are one part.
//
// q: [sequences, heads, D]. tables: [sequences, width]. Grid: (heads,
// sequences, parts). With parts, out is [sequences, heads, parts, D] and lse
// [sequences, heads, parts]; parts without keys are not written. Dynamic shared
// memory: a float for each of `room` keys, but at least WARPS * D floats; a
// part with more keys gets NaN. No slot without a token is read.
template <int D, int BLOCK, bool CHUNKS, int GROUP, bool COLUMNS, int PART,
          class Out>
__global__ void __launch_bounds__(THREADS)
    paged(const bf16* __restrict__ q, const bf16* __restrict__ keys,
          const bf16* __restrict__ values, const int* __restrict__ tables,
          int width, const int* __restrict__ lengths, int kv_heads, int room,
          float scale, Out* __restrict__ out, float* __restrict__ lse) {
  static_assert(D % 32 == 0 && 32 % BLOCK == 0 && 32 % GROUP == 0);
  static_assert(PART % BLOCK == 0);
  // --8<-- [start:range]
  const int head = blockIdx.x, sequence = blockIdx.y, part = blockIdx.z;
  const int kv_head = head / (gridDim.x / kv_heads);
  const int begin = part * PART, length = lengths[sequence];
  const int end = PART > 0 ? min(begin + PART, length) : length;
  if (PART > 0 && begin >= end) return;  // this part has no keys
  const int count = end - begin;         // keys of this block
  const int* const table = tables + (long long)sequence * width;
  const long long row = (long long)sequence * gridDim.x + head;
  // --8<-- [end:range]
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  extern __shared__ __align__(16) unsigned char shared[];
  float* const logits = reinterpret_cast<float*>(shared);
  __shared__ float of_warp[WARPS];
  __shared__ Pack<float, 4> query[D / 4];
  float* const scaled = query[0].at;
  for (int e = threadIdx.x; e < D; e += THREADS)
    scaled[e] = scale * __bfloat162float(q[row * D + e]);
  Out* const to = out + (row * gridDim.z + part) * D;
  if (count > room) {  // the logits have no room
    for (int e = threadIdx.x; e < D; e += THREADS) to[e] = Out(NAN);
    if (threadIdx.x == 0) lse[row * gridDim.z + part] = NAN;
    return;
  }
  __syncthreads();

  // --8<-- [start:scores]
  constexpr int VEC = GROUP < X ? X / GROUP : 1;  // elements of a load
  constexpr int LOADS = D / GROUP / VEC;          // of a thread, for a key
  constexpr int KEYS = 32 / GROUP;                // of a warp at a time
  const int offset = lane % GROUP * VEC;          // in its group
  float most = -INFINITY;
  for (int first = begin + warp * KEYS; first < end; first += WARPS * KEYS) {
    const int token = first + lane / GROUP;
    float score = 0;
    if (token < end) {
      const int block = table[token / BLOCK], slot = token % BLOCK;
      Pack<bf16, VEC> key[LOADS];
#pragma unroll
      for (int i = 0; i < LOADS; ++i)
        key[i] = *reinterpret_cast<const Pack<bf16, VEC>*>(
            keys + place_of_key<D, BLOCK, CHUNKS>(block, kv_heads, kv_head,
                                                  slot,
                                                  i * GROUP * VEC + offset));
#pragma unroll
      for (int i = 0; i < LOADS * VEC; ++i)
        score += scaled[i / VEC * GROUP * VEC + offset + i % VEC] *
                 __bfloat162float(key[i / VEC].at[i % VEC]);
    }
#pragma unroll
    for (int away = GROUP / 2; away > 0; away /= 2)
      score += __shfl_xor_sync(~0u, score, away);
    if (token < end) {
      if (lane % GROUP == 0) logits[token - begin] = score;
      most = fmaxf(most, score);
    }
  }
  // --8<-- [end:scores]

  // --8<-- [start:softmax]
  most = of_block<true>(most, of_warp);  // and now all logits are there
  float sum = 0;
  for (int i = threadIdx.x; i < (count + BLOCK - 1) / BLOCK * BLOCK;
       i += THREADS) {
    // 0 for the slots of the last block that hold no token
    const float weight = i < count ? expf(logits[i] - most) : 0;
    logits[i] = weight;
    sum += weight;
  }
  sum = of_block<false>(sum, of_warp);  // and now all weights are there
  // --8<-- [end:softmax]

  // --8<-- [start:values]
  using Of = Held<D, BLOCK, COLUMNS>;
  float result[Of::COUNT] = {};
  for (int first = begin + warp * BLOCK; first < end; first += WARPS * BLOCK) {
    const int block = table[first / BLOCK];
    const float* const weights = logits + first - begin;
    if constexpr (COLUMNS) {
      // --8<-- [start:columns]
      using Load = Pack<bf16, Of::VEC>;
      const int slot = lane % Of::PER_ROW * Of::VEC;
      const auto mine =
          *reinterpret_cast<const Pack<float, Of::VEC>*>(weights + slot);
#pragma unroll
      for (int i = 0; i < Of::COUNT; ++i) {
        Load value = *reinterpret_cast<const Load*>(
            values + place_of_value<D, BLOCK, true>(
                         block, kv_heads, kv_head, slot, Of::element(lane, i)));
#pragma unroll
        for (int j = 0; j < Of::VEC; ++j)
          if (first + slot + j < end)  // else it may be NaN, and 0 * NaN is NaN
            result[i] += mine.at[j] * __bfloat162float(value.at[j]);
      }
      // --8<-- [end:columns]
    } else {
      using Load = Pack<bf16, Of::COUNT>;
      Load value[BLOCK] = {};
#pragma unroll
      for (int j = 0; j < BLOCK; ++j)
        if (first + j < end)
          value[j] = *reinterpret_cast<const Load*>(
              values + place_of_value<D, BLOCK, false>(
                           block, kv_heads, kv_head, j, Of::element(lane, 0)));
#pragma unroll
      for (int i = 0; i < BLOCK * Of::COUNT; ++i)
        result[i % Of::COUNT] +=
            weights[i / Of::COUNT] *
            __bfloat162float(value[i / Of::COUNT].at[i % Of::COUNT]);
    }
  }
  // --8<-- [end:values]

  // --8<-- [start:over-warps]
#pragma unroll
  for (int i = 0; i < Of::COUNT; ++i)
#pragma unroll
    for (int away = Of::PER_ROW / 2; away > 0; away /= 2)
      result[i] += __shfl_xor_sync(~0u, result[i], away);
  __syncthreads();  // no warp needs the weights anymore: their room is free
  float* const sums = logits;  // [WARPS][D]
  if (lane % Of::PER_ROW == 0)
#pragma unroll
    for (int i = 0; i < Of::COUNT; ++i)
      sums[warp * D + Of::element(lane, i)] = result[i];
  __syncthreads();
  for (int e = threadIdx.x; e < D; e += THREADS) {
    float total = 0;
    for (int w = 0; w < WARPS; ++w) total += sums[w * D + e];
    to[e] = Out(sum == 0 ? 0 : total / sum);
  }
  if (threadIdx.x == 0)
    lse[row * gridDim.z + part] = sum == 0 ? -INFINITY : most + logf(sum);
  // --8<-- [end:over-warps]
}

// --8<-- [start:join]
// The results of the parts become one. Grid: (heads, sequences), D threads.
template <int D, int PART>
__global__ void __launch_bounds__(D)
    join(const float* __restrict__ results, const float* __restrict__ of_parts,
         const int* __restrict__ lengths, int parts, bf16* __restrict__ out,
         float* __restrict__ lse) {
  const long long row = (long long)blockIdx.y * gridDim.x + blockIdx.x;
  const int count = (lengths[blockIdx.y] + PART - 1) / PART;
  float most = -INFINITY, sum = 0, total = 0;
  for (int p = 0; p < count; ++p) most = fmaxf(most, of_parts[row * parts + p]);
  for (int p = 0; p < count; ++p) {
    const float weight = expf(of_parts[row * parts + p] - most);
    sum += weight;
    total += weight * results[(row * parts + p) * D + threadIdx.x];
  }
  out[row * D + threadIdx.x] = __float2bfloat16_rn(sum == 0 ? 0 : total / sum);
  if (threadIdx.x == 0) lse[row] = sum == 0 ? -INFINITY : most + logf(sum);
}
// --8<-- [end:join]

// --8<-- [start:store]
// Keys and values of tokens, [tokens, kv_heads, D], into their slots of a
// cache. A token with a slot below 0 has none. Grid: tokens x kv_heads.
template <int D, int BLOCK, bool CHUNKS, bool COLUMNS>
__global__ void __launch_bounds__(D)
    store(const bf16* __restrict__ from_keys,
          const bf16* __restrict__ from_values, const int* __restrict__ slots,
          bf16* __restrict__ keys, bf16* __restrict__ values) {
  const int token = blockIdx.x, kv_head = blockIdx.y, e = threadIdx.x;
  const int slot = slots[token];
  if (slot < 0) return;
  const long long from = ((long long)token * gridDim.y + kv_head) * D + e;
  const int block = slot / BLOCK, in_block = slot % BLOCK;
  keys[place_of_key<D, BLOCK, CHUNKS>(block, gridDim.y, kv_head, in_block, e)] =
      from_keys[from];
  values[place_of_value<D, BLOCK, COLUMNS>(block, gridDim.y, kv_head, in_block,
                                           e)] = from_values[from];
}
// --8<-- [end:store]

// --8<-- [start:elements]
// Which elements of a value each lane adds up: [32][Held::COUNT]. One warp.
template <int D, int BLOCK>
__global__ void elements_of_lanes(int* __restrict__ elements) {
  using Of = Held<D, BLOCK, true>;
  for (int i = 0; i < Of::COUNT; ++i)
    elements[threadIdx.x * Of::COUNT + i] = Of::element(threadIdx.x, i);
}
// --8<-- [end:elements]

// Instances that are compiled by the tests:
// @instance paged<128,16,false,1,false,0,__nv_bfloat16>
// @instance paged<128,16,true,1,false,0,__nv_bfloat16>
// @instance paged<128,16,true,2,false,0,__nv_bfloat16>
// @instance paged<128,16,true,2,true,0,__nv_bfloat16>
// @instance paged<128,16,true,2,true,512,float>
// @instance paged<128,1,true,32,true,0,__nv_bfloat16>
// @instance paged<128,8,true,4,true,0,__nv_bfloat16>
// @instance paged<96,32,false,1,false,0,__nv_bfloat16>
// @instance join<128,512>
// @instance store<128,16,true,true>
// @instance elements_of_lanes<128,16>
