// The attention of cluster.cu: keys shared out over the blocks, within a block
// over its warps.
#pragma once
#include "cluster_product.cuh"

// --8<-- [start:tile]
// Keys and values of one KV head that a warp has in its registers: LANES lanes
// a key, 4 elements each; ACROSS keys side by side, ROWS times.
template <int D>
struct Tile {
  static constexpr int LANES = D / 4, ACROSS = 32 / LANES, ROWS = 4;
  static constexpr int KEYS = ROWS * ACROSS;
  static_assert(LANES * 4 == D && 32 % LANES == 0, "lanes of a key");
  uint2 keys[ROWS], values[ROWS];

  // This lane's key in row `row`, in the tile.
  static __device__ __forceinline__ int key(int row) {
    return row * ACROSS + threadIdx.x % 32 / LANES;
  }

  // The slot of key number lane % KEYS of a tile; -1 for none, and for the last
  // key, the new one, which this launch itself puts into the cache.
  static __device__ __forceinline__ int find(const Step& s, int tile) {
    const int k = tile * KEYS + threadIdx.x % KEYS;
    if (k >= s.length - 1) return -1;
    return s.table[k / s.block_size] * s.block_size + k % s.block_size;
  }

  // What lanes have found, they tell each other.
  static __device__ __forceinline__ long long place(const Step& s, int found,
                                                    int row, int kv_head) {
    const int slot = __shfl_sync(~0u, found, key(row));
    if (slot < 0) return -1;
    return ((long long)slot * s.kv_heads + kv_head) * D +
           threadIdx.x % LANES * 4;
  }
  __device__ __forceinline__ void load(const Step& s, const Layer& of,
                                       int found, int kv_head) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const long long from = place(s, found, r, kv_head);
      keys[r] = values[r] = make_uint2(0, 0);
      if (from < 0) continue;
      keys[r] = *reinterpret_cast<const uint2*>(of.keys + from);
      values[r] = *reinterpret_cast<const uint2*>(of.values + from);
    }
  }
  // Bring them near: into L2, where they take no registers.
  static __device__ __forceinline__ void approach(const Step& s,
                                                  const Layer& of, int found,
                                                  int kv_head) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const long long from = place(s, found, r, kv_head);
      if (from < 0) continue;
      asm volatile("prefetch.global.L2 [%0];" ::"l"(of.keys + from));
      asm volatile("prefetch.global.L2 [%0];" ::"l"(of.values + from));
    }
  }
};

// 4 bf16 as fp32.
__device__ __forceinline__ void widen(float (&to)[4], const uint2& v) {
  to[0] = __uint_as_float(v.x << 16);
  to[1] = __uint_as_float(v.x & 0xffff0000);
  to[2] = __uint_as_float(v.y << 16);
  to[3] = __uint_as_float(v.y & 0xffff0000);
}
// --8<-- [end:tile]

// --8<-- [start:attend]
// Tiles of this warp: its team is the warps of the same KV head.
template <int D>
struct Team {
  int size, head, member;
  __device__ __forceinline__ explicit Team(int kv_heads)
      : size(WARPS / kv_heads),
        head(threadIdx.x / 32 / size),
        member(threadIdx.x / 32 % size) {}
};

// One query of each of GROUP heads, to the keys of this warp, into the warp's
// sums. found: slots of the first of them, which are asked for before the
// queries are there.
template <int D, int GROUP, int CLUSTER>
__device__ __noinline__ void attend(const Step& s, int layer, int found,
                                    Barrier& queries, unsigned parity) {
  __builtin_assume(__isShared(&s));
  const Layer& of = s.of[layer];
  const Team<D> team(s.kv_heads);
  Tile<D> tile;
  tile.load(s, of, found, team.head);
  wait(queries, parity);
  constexpr int LANES = Tile<D>::LANES, ROWS = Tile<D>::ROWS;
  const int lane = threadIdx.x % 32, column = lane % LANES;
  const __nv_bfloat16* const elements = s.qkv;
  const uint2* const qkv = reinterpret_cast<const uint2*>(elements);
  float q[GROUP][4], sum[GROUP][4] = {}, most[GROUP], total[GROUP] = {};
  const float by = rsqrtf((float)D) * 1.4426950408889634f;  // powers of 2
#pragma unroll
  for (int h = 0; h < GROUP; ++h) {
    widen(q[h], qkv[(team.head * GROUP + h) * LANES + column]);
#pragma unroll
    for (int i = 0; i < 4; ++i) q[h][i] *= by;
    most[h] = -INFINITY;
  }
  int n = s.rank + CLUSTER * team.member;  // number of the tile
#pragma unroll 1
  while (n * Tile<D>::KEYS < s.length) {
    const int next = n + CLUSTER * team.size;
    found = tile.find(s, next);  // asked for early
    float p[ROWS][GROUP];        // scores, then their powers
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const int key = n * Tile<D>::KEYS + tile.key(r);
      if (key == s.length - 1) {  // the new one
        const int at = (s.heads + team.head) * LANES + column;
        tile.keys[r] = qkv[at], tile.values[r] = qkv[at + s.kv_heads * LANES];
      }
      float k[4];
      widen(k, tile.keys[r]);
#pragma unroll
      for (int h = 0; h < GROUP; ++h) {
        float score = 0.0f;
#pragma unroll
        for (int i = 0; i < 4; ++i) score += q[h][i] * k[i];
#pragma unroll
        for (int away = 1; away < LANES; away *= 2)
          score += __shfl_xor_sync(~0u, score, away);
        p[r][h] = key < s.length ? score : -INFINITY;
      }
    }
#pragma unroll
    for (int h = 0; h < GROUP; ++h) {
      float now = most[h];  // finite from here on: the tile has a key
#pragma unroll
      for (int r = 0; r < ROWS; ++r) now = fmaxf(now, p[r][h]);
#pragma unroll
      for (int away = LANES; away < 32; away *= 2)
        now = fmaxf(now, __shfl_xor_sync(~0u, now, away));
      const float keep = exp2f(most[h] - now);
      most[h] = now, total[h] *= keep;
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[h][i] *= keep;
#pragma unroll
      for (int r = 0; r < ROWS; ++r) total[h] += p[r][h] = exp2f(p[r][h] - now);
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      float v[4];
      widen(v, tile.values[r]);
#pragma unroll
      for (int h = 0; h < GROUP; ++h)
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[h][i] += p[r][h] * v[i];
    }
    tile.load(s, of, found, team.head);
    n = next;
  }
  // Lanes of the same elements have added up other keys.
#pragma unroll
  for (int h = 0; h < GROUP; ++h) {
#pragma unroll
    for (int away = LANES; away < 32; away *= 2) {
      total[h] += __shfl_xor_sync(~0u, total[h], away);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sum[h][i] += __shfl_xor_sync(~0u, sum[h][i], away);
    }
    float* const to = s.sums + (threadIdx.x / 32 * GROUP + h) * (D + 4);
    if (lane < LANES) store(to + column * 4, sum[h]);
    if (lane == 0) to[D] = most[h], to[D + 1] = total[h];
  }
}
// --8<-- [end:attend]

// --8<-- [start:exchange]
// Blocks that have keys: the first ones.
template <int D, int CLUSTER>
__device__ __forceinline__ int blocks_with_keys(int length) {
  return min(CLUSTER, (max(length, 0) + Tile<D>::KEYS - 1) / Tile<D>::KEYS);
}

// The sums of the warps of a head become this block's, in every block. A thread
// has four of a head's D sums, or its maximum and its total.
template <int D, int GROUP, int CLUSTER>
__device__ __noinline__ void send_attended(const Step& s, int team,
                                           Barrier& barrier) {
  __builtin_assume(__isShared(&s));
  constexpr int PIECES = D / 4 + 1, LINE = GROUP * (D + 4);
#pragma unroll 1
  for (int i = threadIdx.x; i < s.heads * PIECES; i += THREADS) {
    const int head = i / PIECES, piece = i % PIECES;
    const float* const warps =
        s.sums + head / GROUP * team * LINE + head % GROUP * (D + 4);
    float most = -INFINITY;
    for (int w = 0; w < team; ++w) most = fmaxf(most, warps[w * LINE + D]);
    float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int w = 0; w < team; ++w) {  // one without a key has 2^-inf
      const float* const of = warps + w * LINE;
      const float weight = exp2f(of[D] - most);
      const float4 v = *reinterpret_cast<const float4*>(of + piece * 4);
      sum.x += weight * v.x, sum.y += weight * v.y;
      sum.z += weight * v.z, sum.w += weight * v.w;
    }
    if (piece == D / 4) sum = make_float4(most, sum.y, 0.0f, 0.0f);
    send<CLUSTER>(s.attended + s.rank * s.heads * (D + 4) + i * 4, sum,
                  barrier);
  }
}

// What all heads have attended to, from the sums of all blocks, as integers.
template <int D>
__device__ __noinline__ void merge_blocks(const Step& s, int blocks) {
  __builtin_assume(__isShared(&s));
  const int line = s.heads * (D + 4);
  quantize(s.bytes, s.scales, s.heads * D, [&](int i) {
    const float* const of = s.attended + i / D * (D + 4);
    float most = -INFINITY, sum = 0.0f, total = 0.0f;
#pragma unroll 4
    for (int b = 0; b < blocks; ++b) most = fmaxf(most, of[b * line + D]);
#pragma unroll 4
    for (int b = 0; b < blocks; ++b) {
      const float weight = exp2f(of[b * line + D] - most);
      sum += weight * of[b * line + i % D];
      total += weight * of[b * line + D + 1];
    }
    return blocks ? sum / total : 0.0f;
  });
}
// --8<-- [end:exchange]
