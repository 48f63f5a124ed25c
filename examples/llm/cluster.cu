// All layers of a step of decoding, for one request with one new token, in one
// launch by one cluster of blocks. What a phase computes, every block needs for
// the next one, and it goes straight from shared memory to shared memory: there
// is no launch between phases, and nothing waits for global memory.
// requires: sm_90
// @instance all_layers<Q4_1, 64, 3, 8>
// @instance all_layers<Q4_1, 64, 3, 16>
// @instance all_layers<Q8_0, 64, 3, 8>
// @instance all_layers<Q4_1, 128, 4, 8>
// @instance all_layers<Q8_0, 16, 2, 8>
#include "cluster_attention.cuh"
#include "overlap.cuh"

// --8<-- [start:norm]
// RMSNorm: every warp sums up the squares for itself. The weights are asked for
// long before: those of two blocks of 32 wait in registers.
struct NormWeights {
  float first, second;
  __device__ __forceinline__ NormWeights(const float* weight, int dim) {
    first = threadIdx.x < dim ? weight[threadIdx.x] : 0.0f;
    second = threadIdx.x + THREADS < dim ? weight[threadIdx.x + THREADS] : 0.0f;
  }
};

// Of the half of x that begins at element `from`.
__device__ __noinline__ void normalize(const Step& s, int from,
                                       const float* weight, NormWeights ready) {
  __builtin_assume(__isShared(&s));
  const float* const x = s.x + from;
  float squares = 0.0f;
  for (int i = threadIdx.x % 32 * 4; i < s.dim; i += 128) {
    const float4 v = *reinterpret_cast<const float4*>(x + i);
    squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  squares = over_row<32>(squares, nullptr, Sum());
  const float scale = rsqrtf(squares * (1.0f / s.dim) + s.eps);
  quantize(s.bytes, s.scales, s.dim, [&](int i) {  // i % THREADS: this thread
    const float w = i < THREADS       ? ready.first
                    : i < 2 * THREADS ? ready.second
                                      : weight[i];
    return x[i] * scale * w;
  });
}
// --8<-- [end:norm]

// --8<-- [start:results]
// What becomes of the sums: queries and keys are turned; keys and values go
// into the cache as well.
template <int D, int CLUSTER>
__device__ __noinline__ void send_qkv(const Step& s, int layer,
                                      Barrier& barrier) {
  __builtin_assume(__isShared(&s));
  const Share& share = s.shares[QKV];
  const Layer& of = s.of[layer];
#pragma unroll 1
  for (int i = threadIdx.x * 4; i < share.strips * 16; i += THREADS * 4) {
    const int output = share.first * 16 + i;
    const int head = output / D, at = output % D;
    const float4 v = add_parts(s, share, i);
    float result[4] = {v.x, v.y, v.z, v.w};
    if (head < s.heads + s.kv_heads) {
      const float2 a = s.turns[at / 2], b = s.turns[at / 2 + 1];
      result[0] = v.x * a.x - v.y * a.y, result[1] = v.x * a.y + v.y * a.x;
      result[2] = v.z * b.x - v.w * b.y, result[3] = v.z * b.y + v.w * b.x;
    }
    Vector<__nv_bfloat16, 4> rounded;
    store(rounded.at, result);
    const uint2 bits = reinterpret_cast<const uint2&>(rounded);
    send<CLUSTER>(s.qkv + output, bits, barrier);
    const int kv = head - s.heads;
    if (kv < 0 || s.slot < 0) continue;
    __nv_bfloat16* const cache =
        kv < s.kv_heads ? of.keys + kv * D : of.values + (kv - s.kv_heads) * D;
    *reinterpret_cast<uint2*>(cache + (long long)s.slot * s.kv_heads * D + at) =
        bits;
  }
}

// The sum of the half of x that begins at `from`, and a product, becomes the
// other half.
template <int CLUSTER>
__device__ __noinline__ void send_x(const Step& s, Product product, int from,
                                    Barrier& barrier) {
  __builtin_assume(__isShared(&s));
  const Share& share = s.shares[product];
  const float* const x = s.x + from;
  float* const to = s.x + (s.dim - from);
#pragma unroll 1
  for (int i = threadIdx.x * 4; i < share.strips * 16; i += THREADS * 4) {
    const int output = share.first * 16 + i;
    const float4 old = *reinterpret_cast<const float4*>(x + output);
    float4 v = add_parts(s, share, i);
    v.x += old.x, v.y += old.y, v.z += old.z, v.w += old.w;
    send<CLUSTER>(to + output, v, barrier);
  }
}

// silu(gate) up: of 16 outputs 8 are gates, the others the ups beside them.
template <int CLUSTER>
__device__ __noinline__ void send_act(const Step& s, Barrier& barrier) {
  __builtin_assume(__isShared(&s));
  const Share& share = s.shares[GATE_UP];
  const auto swiglu = [](float gate, float up) {
    return __fdividef(gate, 1.0f + expf(-gate)) * up;  // as in fused.cu
  };
#pragma unroll 1
  for (int i = threadIdx.x * 4; i < share.strips * 8; i += THREADS * 4) {
    const float4 gate = add_parts(s, share, i / 8 * 16 + i % 8);
    const float4 up = add_parts(s, share, i / 8 * 16 + i % 8 + 8);
    const float4 v = {swiglu(gate.x, up.x), swiglu(gate.y, up.y),
                      swiglu(gate.z, up.z), swiglu(gate.w, up.w)};
    send<CLUSTER>(s.act + share.first * 8 + i, v, barrier);
  }
}

// What was sent, as integers.
__device__ __noinline__ void take_act(const Step& s) {
  __builtin_assume(__isShared(&s));
  quantize(s.bytes, s.scales, s.ffn, [&](int i) { return s.act[i]; });
}
// --8<-- [end:results]

// --8<-- [start:phases]
// Five phases a layer. They are functions of their own, not inlined: what one
// of them keeps in registers would be missing in the others.
//
// Each goes up to where its results have arrived. Nobody overwrites what
// another block still reads: what a phase writes is read in the next one only,
// and no block gets through a phase before all others have got to its end. (A
// block without keys sends nothing in the second one, but nothing gets far
// without what it sends in the others.)
template <class Format, int D, int GROUP, int CLUSTER>
__device__ __forceinline__ void compute(const Step& s, Barrier* arrived) {
  const int blocks = blocks_with_keys<D, CLUSTER>(s.length);
  const Team<D> team(s.kv_heads);
  const bool attends = s.rank < blocks && team.head < s.kv_heads;
  // Where the keys are that this warp begins with: the same in all layers.
  const int found =
      attends ? Tile<D>::find(s, s.rank + CLUSTER * team.member) : -1;
  unsigned tile = 0;
  NormWeights attention_norm(s.of[0].attention_norm, s.dim);
#pragma unroll 1
  for (int layer = 0; layer < s.layers; ++layer) {
    const Layer& of = s.of[layer];
    const unsigned parity = layer % 2;
    if (threadIdx.x == 0) {
      expect(arrived[0], (s.heads + 2 * s.kv_heads) * D * 2);
      expect(arrived[1], blocks * s.heads * (D + 4) * 4);
      expect(arrived[2], s.dim * 4);
      expect(arrived[3], s.ffn * 4);
      expect(arrived[4], s.dim * 4);
    }
    // What does not depend on x is asked for now.
    const NormWeights ffn_norm(of.ffn_norm, s.dim);
    if (attends) Tile<D>::approach(s, of, found, team.head);

    normalize(s, 0, of.attention_norm, attention_norm);
    tile = multiply<Format>(s, layer, QKV, tile);
    send_qkv<D, CLUSTER>(s, layer, arrived[0]);
    if (attends) attend<D, GROUP, CLUSTER>(s, layer, found, arrived[0], parity);
    wait(arrived[0], parity);
    __syncthreads();
    if (s.rank < blocks)
      send_attended<D, GROUP, CLUSTER>(s, team.size, arrived[1]);
    if (layer + 1 < s.layers)
      attention_norm = NormWeights(s.of[layer + 1].attention_norm, s.dim);
    wait(arrived[1], parity);

    merge_blocks<D>(s, blocks);
    tile = multiply<Format>(s, layer, O, tile);
    send_x<CLUSTER>(s, O, 0, arrived[2]);
    wait(arrived[2], parity);

    normalize(s, s.dim, of.ffn_norm, ffn_norm);
    tile = multiply<Format>(s, layer, GATE_UP, tile);
    send_act<CLUSTER>(s, arrived[3]);
    wait(arrived[3], parity);

    take_act(s);
    tile = multiply<Format>(s, layer, DOWN, tile);
    send_x<CLUSTER>(s, DOWN, s.dim, arrived[4]);
    wait(arrived[4], parity);
  }
}
// --8<-- [end:phases]

// --8<-- [start:kernel]
// x: dim; positions, slots, lengths: of the one token, its cache slot (nothing
// is stored if negative) and the keys that it attends to, its own, the last
// one, included; table: of the request's blocks. turns: rope.py's table.
// Matrices as in fused.cu, begin at multiples of 16 bytes. Outputs are
// multiples of 16, at least 16 in each block; inputs of 32.
// Grid: one cluster. Dynamic shared memory: SLOTS * slot_bytes, and what
// `arrange` takes. The order of sums depends on CLUSTER, sizes and `length`.
template <class Format, int D, int GROUP, int CLUSTER>
__global__ void __cluster_dims__(CLUSTER) __launch_bounds__(THREADS, 1)
    all_layers(const Layer* layers, int layer_count, float* x,
               const int* positions, const int* slots, const int* lengths,
               const int* table, int block_size, const float2* turns, int dim,
               int ffn, int kv_heads, float eps, int slot_bytes) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ Barrier full[SLOTS<Format>], arrived[5];
  __shared__ unsigned read[SLOTS<Format>];
  __shared__ Work works[4 * WARPS];
  __shared__ Step s;

  begin_next();
  if (threadIdx.x == 0) {
    const int heads = kv_heads * GROUP;
    s = {rank_in_cluster(), layer_count, dim, ffn, heads, kv_heads};
    s.block_size = block_size, s.table = table, s.eps = eps;
    s.ring = {{shared}, slot_bytes, {full}, {read}};
    s.works = {works};
    arrange<D, GROUP, CLUSTER>(s, shared + SLOTS<Format> * slot_bytes);
    const int outputs[4] = {(heads + 2 * kv_heads) * D, dim, 2 * ffn, dim};
    const int inputs[4] = {dim, heads * D, dim, ffn};
#pragma unroll
    for (int i = 0; i < 4; ++i)
      s.shares[i] =
          share_of<Format>(outputs[i], inputs[i], s.rank, CLUSTER, slot_bytes);
    for (int i = 0; i < SLOTS<Format>; ++i) init(full[i], 1), read[i] = 0;
    for (int i = 0; i < 5; ++i) init(arrived[i], 1);
    // Other blocks, and copies, are to see them too.
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  for (int i = threadIdx.x; i < layer_count; i += THREADS) s.of[i] = layers[i];
  if (threadIdx.x < 4 * WARPS)
    works[threadIdx.x] =
        work_of(s.shares[threadIdx.x / WARPS], threadIdx.x % WARPS);
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 0; i < SLOTS<Format>; ++i) fetch(s, i, 0, QKV, i);

  wait_for_previous();
  if (threadIdx.x == 0) s.length = *lengths, s.slot = *slots;
  for (int i = threadIdx.x; i < dim; i += THREADS) s.x[i] = x[i];
  if (threadIdx.x < D / 2)
    s.turns[threadIdx.x] = turns[(long long)*positions * (D / 2) + threadIdx.x];
  sync_cluster();  // all blocks are there, and their barriers
  compute<Format, D, GROUP, CLUSTER>(s, arrived);
  // What was sent to this block is there, but not yet what it has sent.
  if (s.rank == 0)
    for (int i = threadIdx.x; i < dim; i += THREADS) x[i] = s.x[i];
  sync_cluster();
}
// --8<-- [end:kernel]
