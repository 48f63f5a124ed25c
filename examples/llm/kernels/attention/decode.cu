// Attention of one query per sequence over its keys and values: a step of
// decoding. Every key is needed for a few products only, so what counts is to
// read all of them once, as fast as memory delivers them.
// requires: sm_80
#include "decode.cuh"
#include "ptx/overlap.cuh"

// --8<-- [start:parameters]
// out[i, h] = softmax(scale q[i, h] K^T) V over the keys of sequence i. lse[i,
// h] is the natural logarithm of the sum of exponentials.
//
// D: elements of a head, a multiple of 16.
// WARPS: warps of a block, which share the keys of a part.
// STAGES: tiles of a warp in shared memory, at least 2.
// PAGED: whether `tables` say where the keys of a sequence lie.
// Cache: type of keys and values: bf16, or FP8 with `scales` as in fp8.cuh.
//
// `group` consecutive query heads share a KV head. q has a row per sequence
// with its heads side by side; rows are q_stride elements apart, an even
// number. keys and values are [slots, kv_heads, D] and begin at multiples of 16
// bytes. Key j of sequence i is in slot table[j / block_size] * block_size + j
// % block_size, where table is row i of `tables`; without PAGED it is in slot i
// * block_size + j. lengths: keys of each sequence, with the query's own;
// length 0 gives zeros and an lse of -inf. window: only the last `window` keys
// count; 0 means all. softcap: a score s becomes softcap * tanh(s / softcap); 0
// leaves it. No other slot is read, so that it may hold NaN.
//
// Grid: (kv_heads * blocks of up to 8 query heads, parts, sequences). A part is
// `split` keys and begins at a multiple of `split`. The parts have to cover
// every sequence, or its window; otherwise its results are NaN. The sequence
// itself and WARPS decide which part, warp and product a key is in, so results
// do not depend on other sequences. partials: (D + 2) words per query head,
// part and sequence. tickets: a zero for each (x, z) of the grid. Launches that
// may overlap need partials and tickets of their own.
// --8<-- [end:parameters]
// At most 12 warps of an SM find room in its shared memory, so these 12 may
// share all of its registers.
template <int D, int WARPS, int STAGES, bool PAGED, class Cache = __nv_bfloat16>
__global__ void __launch_bounds__(32 * WARPS,
                                  D > 128 || WARPS > 12 ? 1 : 12 / WARPS)
    decode(const __nv_bfloat16* q, long long q_stride, const Cache* keys,
           const Cache* values, const int* __restrict__ tables, int table_width,
           int block_size, const int* __restrict__ lengths, int kv_heads,
           int group, int split, int window, float scale, float softcap,
           __nv_bfloat16* __restrict__ out, float* __restrict__ lse,
           float* __restrict__ partials, unsigned* __restrict__ tickets,
           const float* __restrict__ scales) {
  constexpr bool FP8 = sizeof(Cache) == 1;
  constexpr int THREADS = 32 * WARPS;
  // Rows in shared memory are an odd number of 16-byte pieces apart: so
  // ldmatrix reads its 8 pieces from 8 rows in different banks.
  constexpr int STEPS = D / 16, VECTORS = D * sizeof(Cache) / 16;
  constexpr unsigned ROW_BYTES = ((VECTORS + 1) | 1) * 16;
  constexpr unsigned OPERAND = TILE * ROW_BYTES;
  static_assert(D % 16 == 0 && STAGES > 1);
  extern __shared__ uint4 shared[];  // [WARPS][STAGES][keys, values]
  __shared__ float2 of_warp[WARPS][HEADS];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int g = lane / 4, t = lane % 4;
  const int blocks = (group + HEADS - 1) / HEADS, heads = kv_heads * group;
  const int kv_head = blockIdx.x / blocks, octet = blockIdx.x % blocks;
  const int first_head = kv_head * group + octet * HEADS;
  const int heads_here = min(HEADS, group - octet * HEADS);
  const int sequence = blockIdx.z, max_parts = gridDim.y;
  const long long row = (long long)sequence * heads + first_head;

  begin_next();
  // --8<-- [start:range]
  const int length = lengths[sequence];
  const int begin = window > 0 ? max(0, length - window) : 0;
  const int first_part = begin / split;
  const int parts = length > 0 ? (length - 1) / split + 1 - first_part : 0;
  if (parts == 0 || parts > max_parts || (int)blockIdx.y >= parts)
    wait_for_previous();  // although nothing is needed: see overlap.cuh
  if (parts == 0 || parts > max_parts) {
    const float fill = parts == 0 ? 0.0f : NAN;
    if (blockIdx.y > 0) return;
    for (int i = threadIdx.x; i < heads_here * D; i += THREADS)
      out[row * D + i] = __float2bfloat16(fill);
    if (threadIdx.x < heads_here)
      lse[row + threadIdx.x] = parts == 0 ? -INFINITY : NAN;
    return;
  }
  if ((int)blockIdx.y >= parts) return;
  const int start = (first_part + blockIdx.y) * split;
  const int from = max(begin, start), to = start + min(split, length - start);
  // --8<-- [end:range]

  // --8<-- [start:fetch]
  // A warp takes every WARPS-th tile into shared memory of its own, so it waits
  // for its own copies and for no other warp. Each lane knows the slot of one
  // key of the tile that is fetched next; it asks the table for that slot when
  // it fetches the tile before.
  const int* const table = tables + (long long)sequence * table_width;
  // --8<-- [start:find]
  const auto find = [&](int tile) {
    const int key = tile * TILE + lane % TILE;
    if (key < from || key >= to) return -1;
    if (!PAGED) return sequence * block_size + key;
    const int block = key / block_size;
    return table[block] * block_size + key - block * block_size;
  };
  // --8<-- [end:find]
  const unsigned base = shared_address(shared) + warp * (STAGES * 2 * OPERAND);
  const long long slot_elements = (long long)kv_heads * D;
  int ahead = from / TILE + warp, slot = find(ahead);
  const auto fetch = [&](int stage) {
    if (ahead * TILE < to) {
#pragma unroll
      for (int i = 0; i < (TILE * VECTORS + 31) / 32; ++i) {
        const int at = i * 32 + lane, key = at / VECTORS, vector = at % VECTORS;
        const int there = __shfl_sync(~0u, slot, key);
        if (TILE * VECTORS % 32 && key >= TILE) continue;
        const long long word = max(there, 0) * slot_elements + kv_head * D +
                               vector * (16 / (int)sizeof(Cache));
        const unsigned goal =
            base + stage * 2 * OPERAND + key * ROW_BYTES + vector * 16;
        const int bytes = there < 0 ? 0 : 16;
        copy16(goal, keys + word, bytes);
        copy16(goal + OPERAND, values + word, bytes);
      }
      ahead += WARPS;
      slot = find(ahead);
    }
    commit();
  };
  // --8<-- [end:fetch]
  wait_for_previous();  // it writes the queries and the last keys
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) fetch(s);

  // The transposed queries are the second operand of the products: a column is
  // a head. From an FP8 key a lane reads 4 neighboring elements at a time, so
  // it takes the queries' elements in the same order: a sum may have any order.
  unsigned query[STEPS][2];
  const __nv_bfloat16* const of_head = q + sequence * q_stride +
                                       (long long)(first_head + g) * D +
                                       (FP8 ? 4 : 2) * t;
#pragma unroll
  for (int i = 0; i < 2 * STEPS; ++i)
    query[i / 2][i % 2] =
        g < heads_here ? *reinterpret_cast<const unsigned*>(
                             of_head + (FP8 ? i / 2 * 16 + i % 2 * 2 : i * 8))
                       : 0;

  // --8<-- [start:tile]
  // S^T = K Q^T: a lane holds the scores of keys g and g + 8 with heads 2t and
  // 2t + 1. O^T += V^T P^T has the heads in the same columns.
  float inner = softcap > 0 ? scale / softcap : scale * LOG2_E;
  if (FP8) inner *= scales[kv_head];
  const float by_scale = FP8 ? scales[kv_heads + kv_head] : 1.0f;
  const unsigned key_row = base + lane % 16 * ROW_BYTES + lane / 16 * 16;
  const unsigned value_row = base + OPERAND +
                             (lane % 8 + lane / 16 * 8) * ROW_BYTES +
                             lane / 8 % 2 * 16;
  float sum[STEPS][4] = {}, m[2] = {-INFINITY, -INFINITY}, l[2] = {};
  int stage = 0;
  for (int tile = from / TILE + warp; tile * TILE < to; tile += WARPS) {
    wait_for_all_but<STAGES - 2>();
    __syncwarp();
    fetch(stage == 0 ? STAGES - 1 : stage - 1);
    const unsigned at = stage * 2 * OPERAND;
    stage = stage == STAGES - 1 ? 0 : stage + 1;
    // --8<-- [start:products]
    unsigned a[4], fp8[4];
    float two[2][4] = {};  // two sums: products wait less for each other
#pragma unroll
    for (int i = 0; i < STEPS; ++i) {
      if constexpr (FP8)
        load_keys(a, fp8, key_row + at + i / 2 * 32, i % 2);
      else
        ldmatrix(a, key_row + at + i * 32);
      mma(two[i % 2], a, query[i][0], query[i][1]);
    }
    // --8<-- [end:products]
    float p[4], keep[2];  // p: scores, then exp(score - m) by powers of 2
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = tile * TILE + g + i / 2 * 8;
      p[i] = (two[0][i] + two[1][i]) * inner;
      if (softcap > 0) p[i] = softcap * LOG2_E * tanhf(p[i]);
      if (key < from || key >= to) p[i] = -INFINITY;
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float most = fmaxf(m[j], fmaxf(p[j], p[j + 2]));
#pragma unroll
      for (int away = 4; away < 32; away *= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, away));
      keep[j] = exp2f(m[j] - most);
      m[j] = most;
      p[j] = exp2f(p[j] - most), p[j + 2] = exp2f(p[j + 2] - most);
      l[j] = l[j] * keep[j] + (p[j] + p[j + 2]);
    }
    const unsigned b0 = turned(pack(p[0], p[1]));
    const unsigned b1 = turned(pack(p[2], p[3]));
#pragma unroll
    for (int i = 0; i < STEPS; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[i][j] *= keep[j % 2];
      if constexpr (FP8)
        load_values(a, fp8, value_row + at + i / 2 * 32, i % 2);
      else
        ldmatrix_turned(a, value_row + at + i * 32);
      mma(sum[i], a, b0, b1);
    }
  }
  // --8<-- [end:tile]

  // --8<-- [start:warps]
  // The warps put their sums into shared memory, after all copies have arrived.
  constexpr int LINE = D + 4;  // so that lanes store to different banks
  float* const sums = reinterpret_cast<float*>(shared);
  wait_for_all_but<0>();
  __syncthreads();
#pragma unroll
  for (int j = 0; j < 2; ++j) {
#pragma unroll
    for (int away = 4; away < 32; away *= 2)
      l[j] += __shfl_xor_sync(~0u, l[j], away);
    float* const line =
        sums + (warp * HEADS + 2 * t + j) * LINE + (FP8 ? 2 * g : g);
#pragma unroll
    for (int i = 0; i < STEPS; ++i) {
      line[i * 16] = sum[i][j];
      line[i * 16 + (FP8 ? 1 : 8)] = sum[i][j + 2];
    }
    if (g == 0) of_warp[warp][2 * t + j] = make_float2(m[j], l[j]);
  }
  __syncthreads();
  // Row h of part p: D sums from word (row_of_part(p) + h) * D on, and its m
  // and l.
  const auto row_of_part = [&](int p) {
    return ((long long)sequence * max_parts + p) * heads + first_head;
  };
  float2* const tops = reinterpret_cast<float2*>(
      partials + (long long)gridDim.z * max_parts * heads * D);
  for (int i = threadIdx.x; i < heads_here * D; i += THREADS) {
    const int h = i / D;
    float2 all = {-INFINITY, 0.0f};
    float total = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) all.x = fmaxf(all.x, of_warp[w][h].x);
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {  // a warp without keys: m = -inf
      const float weight = exp2f(of_warp[w][h].x - all.x);
      all.y += weight * of_warp[w][h].y;
      total += weight * sums[(w * HEADS + h) * LINE + i % D];
    }
    if (parts == 1) {
      out[row * D + i] = __float2bfloat16(total / all.y * by_scale);
      if (i % D == 0) lse[row + h] = (all.x + log2f(all.y)) * LN_2;
    } else {
      partials[row_of_part(blockIdx.y) * D + i] = total;
      if (i % D == 0) tops[row_of_part(blockIdx.y) + h] = all;
    }
  }
  // --8<-- [end:warps]
  if (parts == 1) return;
  add_parts<D>(tickets + (long long)sequence * gridDim.x + blockIdx.x, parts,
               heads_here, row_of_part, partials, tops, by_scale, out + row * D,
               lse + row);
}

// Instances that are compiled by the tests:
// @instance decode<64,4,4,true>
// @instance decode<64,4,4,false>
// @instance decode<64,8,3,true>
// @instance decode<64,16,3,true>
// @instance decode<64,8,4,true,__nv_fp8_e4m3>
// @instance decode<80,4,4,true>
// @instance decode<96,4,4,true>
// @instance decode<112,4,3,true>
// @instance decode<128,4,3,true>
// @instance decode<128,4,3,false>
// @instance decode<256,4,2,true>
// @instance decode<256,4,3,false>
// @instance decode<64,4,4,true,__nv_fp8_e4m3>
// @instance decode<80,4,4,true,__nv_fp8_e4m3>
// @instance decode<128,4,4,true,__nv_fp8_e4m3>
// @instance decode<128,4,4,false,__nv_fp8_e4m3>
// @instance decode<256,4,3,true,__nv_fp8_e4m3>
