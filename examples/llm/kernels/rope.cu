// Positions and the paged cache: what happens to a batch behind its product
// with W_qkv.
//
//   load_pairs, store_pairs  four pairs of elements that turn together
//   turn                     turns them
//   rope_and_store           RoPE, and keys and values into the cache
//   copy_blocks              copies whole blocks of the cache
//
// requires: sm_80
#include "fp8.cuh"
#include "ptx/overlap.cuh"
#include "rows.cuh"

using Bf16x4 = Vector<__nv_bfloat16, 4>;
using Bf16x8 = Vector<__nv_bfloat16, 8>;
using Turns = Vector<float2, 2>;  // (cos, sin) of two pairs

// A thread turns a piece of a head, 4 pairs: 8 neighboring elements or, where
// pairs are (x[i], x[i + head_dim / 2]), 4 elements of each half.
constexpr int PIECE = 8;

// Loads the first elements of the 4 pairs of a piece, and the second ones.
// HALVES: whether pairs are (x[i], x[i + HEAD_DIM / 2]) instead of neighbors.
// --8<-- [start:pairs]
template <int HEAD_DIM, bool HALVES>
__device__ __forceinline__ void load_pairs(float (&first)[4],
                                           float (&second)[4],
                                           const __nv_bfloat16* head,
                                           int piece) {
  if constexpr (HALVES) {
    const __nv_bfloat16* const from = head + piece * 4;
    const Bf16x4 a = *reinterpret_cast<const Bf16x4*>(from);
    const Bf16x4 b = *reinterpret_cast<const Bf16x4*>(from + HEAD_DIM / 2);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      first[i] = to_float(a.at[i]), second[i] = to_float(b.at[i]);
  } else {
    const Bf16x8 x = *reinterpret_cast<const Bf16x8*>(head + piece * PIECE);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      first[i] = to_float(x.at[2 * i]), second[i] = to_float(x.at[2 * i + 1]);
  }
}

// The reverse, into bf16 or FP8: T.
template <int HEAD_DIM, bool HALVES, class T>
__device__ __forceinline__ void store_pairs(const float (&first)[4],
                                            const float (&second)[4], T* head,
                                            int piece) {
  if constexpr (HALVES) {
    store(head + piece * 4, first);
    store(head + piece * 4 + HEAD_DIM / 2, second);
  } else {
    float x[PIECE];
#pragma unroll
    for (int i = 0; i < 4; ++i) x[2 * i] = first[i], x[2 * i + 1] = second[i];
    store(head + piece * PIECE, x);
  }
}
// --8<-- [end:pairs]

// --8<-- [start:turn]
// Turns the pairs by the angles whose (cos, sin) begin at `by`.
__device__ __forceinline__ void turn(float (&first)[4], float (&second)[4],
                                     const float2* by) {
  const Turns of[2] = {reinterpret_cast<const Turns*>(by)[0],
                       reinterpret_cast<const Turns*>(by)[1]};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float a = first[i], b = second[i];
    const float cos = of[i / 2].at[i % 2].x, sin = of[i / 2].at[i % 2].y;
    first[i] = a * cos - b * sin;
    second[i] = a * sin + b * cos;
  }
}
// --8<-- [end:turn]

// A block has one token t. Its row of qkv holds `heads` queries, `kv_heads`
// keys and `kv_heads` values, one after the other. Queries and keys are turned
// to position positions[t], pair i by the (cos, sin) at table[positions[t] *
// HEAD_DIM / 2 + i]. Queries go to q, whose rows are q_stride elements apart: q
// may be qkv, with its stride. Keys and values go to slots[t] of the cache,
// [slot_count, kv_heads, HEAD_DIM], unless the cache has no such slot: a token
// that only fills the batch up has slot -1. All rows begin at multiples of 16
// bytes.
//
// HEAD_DIM: elements of a head, a multiple of 8.
// HALVES: whether pairs are (x[i], x[i + HEAD_DIM / 2]) instead of neighbors.
// Cache: bf16, or FP8 with `scales` as in fp8.cuh; rounded once, from fp32.
// --8<-- [start:rope]
template <int HEAD_DIM, bool HALVES, class Cache = __nv_bfloat16>
__global__ void __launch_bounds__(1024)
    rope_and_store(const __nv_bfloat16* qkv, long long qkv_stride,
                   __nv_bfloat16* q, long long q_stride,
                   Cache* __restrict__ keys, Cache* __restrict__ values,
                   int slot_count, const int* __restrict__ positions,
                   const int* __restrict__ slots,
                   const float2* __restrict__ table, int heads, int kv_heads,
                   const float* __restrict__ scales) {
  static_assert(HEAD_DIM % PIECE == 0, "a thread has 8 elements");
  constexpr int PIECES = HEAD_DIM / PIECE;
  begin_next();
  const int token = blockIdx.x;
  const int slot = slots[token];
  const bool stored = (unsigned)slot < (unsigned)slot_count;
  table += (long long)positions[token] * (HEAD_DIM / 2);
  qkv += token * qkv_stride, q += token * q_stride;
  keys += (long long)slot * kv_heads * HEAD_DIM;
  values += (long long)slot * kv_heads * HEAD_DIM;
  wait_for_previous();

  for (int i = threadIdx.x; i < (heads + 2 * kv_heads) * PIECES;
       i += blockDim.x) {
    const int head = i / PIECES, piece = i % PIECES;
    const __nv_bfloat16* const from = qkv + head * HEAD_DIM;
    __nv_bfloat16* to = q + head * HEAD_DIM;
    float first[4], second[4];
    if constexpr (sizeof(Cache) == 1) {
      if (const int kv = head - heads; kv >= 0) {
        if (!stored) continue;
        load_pairs<HEAD_DIM, HALVES>(first, second, from, piece);
        if (kv < kv_heads) turn(first, second, table + piece * 4);
        const float by = 1.0f / scales[kv];
#pragma unroll
        for (int e = 0; e < 4; ++e) first[e] *= by, second[e] *= by;
        store_pairs<HEAD_DIM, HALVES>(first, second,
                                      kv < kv_heads
                                          ? keys + kv * HEAD_DIM
                                          : values + (kv - kv_heads) * HEAD_DIM,
                                      piece);
        continue;
      }
    } else {
      if (head >= heads) {
        if (!stored) continue;
        to = keys + (head - heads) * HEAD_DIM;
      }
      if (head >= heads + kv_heads) {  // a value stays as it is
        to = values + (head - heads - kv_heads) * HEAD_DIM;
        reinterpret_cast<Bf16x8*>(to)[piece] =
            reinterpret_cast<const Bf16x8*>(from)[piece];
        continue;
      }
    }
    load_pairs<HEAD_DIM, HALVES>(first, second, from, piece);
    turn(first, second, table + piece * 4);
    store_pairs<HEAD_DIM, HALVES>(first, second, to, piece);
  }
}
// --8<-- [end:rope]

// Copies blocks copies[2 c] to copies[2 c + 1], for c from 0 to count - 1 in
// this order, in the keys and the values of all layers. block_vectors: vectors
// of 16 bytes in a block; layer_vectors: in a layer. A copy moves each vector
// to the same place of another block. The thread that has this place does all
// copies one after the other, so threads need not wait for each other. A pair
// with a number that is none of the `blocks` of a layer does nothing. Grid:
// places, layers, keys or values.
// --8<-- [start:copies]
extern "C" __global__ void __launch_bounds__(128)
    copy_blocks(uint4* keys, uint4* values, long long layer_vectors,
                int block_vectors, int blocks, const int* __restrict__ copies,
                int count) {
  const int place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= block_vectors) return;
  uint4* const cache =
      (blockIdx.z ? values : keys) + blockIdx.y * layer_vectors + place;
  for (int c = 0; c < count; ++c) {
    const unsigned from = copies[2 * c], to = copies[2 * c + 1];
    if (from < (unsigned)blocks && to < (unsigned)blocks)
      cache[(long long)to * block_vectors] =
          cache[(long long)from * block_vectors];
  }
}
// --8<-- [end:copies]

// Instances that are compiled by the tests:
// @instance rope_and_store<64,false>
// @instance rope_and_store<80,true>
// @instance rope_and_store<120,true>
// @instance rope_and_store<128,false>
// @instance rope_and_store<256,true>
// @instance rope_and_store<64,false,__nv_fp8_e4m3>
// @instance rope_and_store<128,true,__nv_fp8_e4m3>
