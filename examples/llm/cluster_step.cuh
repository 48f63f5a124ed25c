// What all threads of cluster.cu know: sizes, and where what they share lies.
#pragma once
#include "cluster.cuh"

// --8<-- [start:step]
enum Product { QKV, O, GATE_UP, DOWN };

struct Layer {
  const float *attention_norm, *ffn_norm;
  const unsigned char* matrices[4];  // in the order of Product
  __nv_bfloat16 *keys, *values;
};

// What all threads know.
struct Step {
  int rank;  // of this block in the cluster
  int layers, dim, ffn, heads, kv_heads, length, slot, block_size;
  const int* table;
  float eps;
  // In shared memory. x: the residual stream, of which one half is read while
  // the other half is written; attended: of each block, for each head D sums,
  // their maximum and sum of exponentials; sums: of a product's parts, or of
  // the warps' attention.
  Shared<float> x, act, attended, sums;
  Shared<__nv_bfloat16> qkv;
  Shared<unsigned char> bytes;  // what is multiplied, as integers
  Shared<float2> scales, turns;
  Shared<Layer> of;
  Shared<Work> works;  // [4][WARPS]
  Share shares[4];
  Ring ring;
};

// Each part of shared memory begins at a multiple of 16 bytes. The same list is
// in cluster.py.
template <int D, int GROUP, int CLUSTER>
__device__ __forceinline__ void arrange(Step& s, unsigned char* at) {
  const auto take = [&](auto& array, int count) {
    array.at = reinterpret_cast<decltype(array.at)>(at);
    at += (count * (int)sizeof(*array.at) + 15) / 16 * 16;
  };
  const int widest = max(max(s.dim, s.ffn), s.heads * D);
  const int most =
      (max(max(s.dim, 2 * s.ffn), (s.heads + 2 * s.kv_heads) * D) / 16 +
       CLUSTER - 1) /
      CLUSTER;
  take(s.x, 2 * s.dim);
  take(s.act, s.ffn);
  take(s.attended, CLUSTER * s.heads * (D + 4));
  take(s.sums, max(max(WARPS, 2 * most) * 16, WARPS * GROUP * (D + 4)));
  take(s.qkv, (s.heads + 2 * s.kv_heads) * D);
  take(s.bytes, (widest / 32 + 3) * 64);  // `dot` reads up to 3 blocks more
  take(s.scales, widest / 32);
  take(s.turns, D / 2);
  take(s.of, s.layers);
}
// --8<-- [end:step]
