// Attention of few query tokens over many keys, causal and in blocks. It is
// that of flash.cu, but several thread blocks share the keys of a tile of
// queries.
//
//   Item         a tile of queries, and how its keys are dealt out
//   flash_parts  each block computes a part: some keys of a tile of queries
//   merge_parts  adds up the parts of each tile
//
// requires: sm_80
#include "flash_step.cuh"
#include "ptx/overlap.cuh"

// --8<-- [start:deal]
// An item of `work` is a sequence and a tile of its queries. Its keys are dealt
// out in `count` parts, at most `most`. A part is `share` tiles of BN keys; the
// last part takes what is left. A part of a single tile would spend more time
// on its beginning and end than on its keys.
constexpr int LEAST = 2;  // tiles that a part has at least

template <int BM, int BN>
struct Item {
  int sequence, q_start, q_len, k_len;
  int top;  // the tile's first row; it may be before the first query
  int tiles, share, count;

  __device__ __forceinline__ Item(const int* __restrict__ work,
                                  const int* __restrict__ starts,
                                  const int* __restrict__ lengths, int item,
                                  int most) {
    sequence = work[2 * item];
    q_start = q_len = k_len = top = tiles = share = count = 0;
    if (sequence < 0) return;
    q_start = starts[sequence], q_len = starts[sequence + 1] - q_start;
    k_len = lengths[sequence];
    top = work[2 * item + 1] * BM - (ahead() & (BM - 1));
    // The last query of the tile sees the keys up to its own.
    tiles = (ahead() + min(top + BM, q_len) + BN - 1) / BN;
    share = max(LEAST, (tiles + most - 1) / most);
    count = (tiles + share - 1) / share;
  }

  __device__ __forceinline__ int ahead() const {
    return k_len - q_len;  // position of the first query
  }
};
// --8<-- [end:deal]

// As flash<D, BM, BN, WARPS, BLOCKS, true, true, false, Cache> of flash.cu,
// which explains the parameters: causal, and without a window. Sequences have
// at least as many keys as queries, rows begin at multiples of 16 bytes, and d
// is a multiple of 16. power: scale * log2(e).
//
// Grid: items x parts x heads, of which heads vary fastest. A block returns at
// once if its item has fewer parts. If an item has one part only, its block
// stores the results. Otherwise each block writes its part to `partials`, in
// fp32 and not yet divided: BM rows of D sums for each block of the grid, and
// behind the sums of all blocks BM pairs for each block: the base of the row's
// exponentials, and their sum.
//
// The numbers of the batch, and of the slots of its keys, are older than the
// step's first kernel: a block reads them before it waits for the kernel
// before.
//
// The bits of a result depend on the number of parts, and on the last query of
// its tile. They are the same again for the same batch.
// --8<-- [start:kernel]
template <int D, int BM, int BN, int WARPS, int BLOCKS,
          class Cache = __nv_bfloat16>
__global__ void __launch_bounds__(WARPS * 32, BLOCKS)
    flash_parts(const __nv_bfloat16* q, int q_stride, const Cache* keys,
                const Cache* values, int kv_stride,
                __nv_bfloat16* __restrict__ out, int out_stride,
                float* __restrict__ lse, int heads, int kv_heads, int d,
                float power, int parts, const int* __restrict__ work,
                const int* __restrict__ starts, const int* __restrict__ lengths,
                const int* __restrict__ tables, int width, int block_size,
                const float* __restrict__ scales,
                float* __restrict__ partials) {
  constexpr bool FP8 = sizeof(Cache) == 1;
  using T = Tiles<D, BM, BN, WARPS, BLOCKS>;
  constexpr int MT = T::MT, THREADS = T::THREADS, TILE = T::TILE;
  extern __shared__ __align__(128) unsigned char shared[];
  const unsigned of_q = shared_address(shared), of_k = of_q + BM * D * 2,
                 of_v = of_k + 2 * TILE;
  int* const slots = reinterpret_cast<int*>(shared + BM * D * 2 + 4 * TILE);
  const int lane = threadIdx.x % 32;
  const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);  // uniform registers

  begin_next();
  // --8<-- [start:part]
  const int head = blockIdx.x % heads, number = blockIdx.x / heads;
  const Item<BM, BN> it(work, starts, lengths, number / parts, parts);
  const int part = number % parts;
  if (part >= it.count) {
    wait_for_previous();  // although nothing is needed: see overlap.cuh
    return;
  }
  int step = part * it.share;
  const int steps = min(step + it.share, it.tiles);
  // --8<-- [end:part]
  const int ahead = it.ahead(), q_len = it.q_len, k_len = it.k_len;
  const int my_top = it.top + warp * (16 * MT);
  // All queries of this warp see the keys before `whole`; none sees a key from
  // `end` on.
  const bool any = my_top + 16 * MT > 0 && my_top < q_len;
  const int whole = ahead + max(my_top, 0) + 1,
            end = any ? ahead + min(my_top + 16 * MT, q_len) : 0;

  // The last key stands for those behind it, as in flash.cu.
  const auto slot_of = [&](int key) {
    key = min(key, k_len - 1);
    return tables[(long long)it.sequence * width + key / block_size] *
               block_size +
           key % block_size;
  };
  if (threadIdx.x < BN) {
    slots[threadIdx.x] = slot_of(step * BN + threadIdx.x);
    slots[BN + threadIdx.x] = slot_of((step + 1) * BN + threadIdx.x);
  }
  __syncthreads();
  wait_for_previous();  // for the queries, and the keys of this step
  const int kv_head = head / (heads / kv_heads);
  const long long skip = (long long)kv_head * d;
  if (FP8) power *= scales[kv_head];
  const auto copy_step = [&](int stage) {
    const auto row_of = [&](int line) { return slots[stage * BN + line]; };
    copy_tile<D, BN, THREADS, true>(of_k + (FP8 ? TILE : stage * TILE),
                                    keys + skip, kv_stride, d, row_of);
    copy_tile<D, BN, THREADS, true>(of_v + (FP8 ? TILE : stage * TILE),
                                    values + skip, kv_stride, d, row_of);
  };
  copy_tile<D, BM, THREADS, true>(
      of_q, q + (long long)head * d, q_stride, d, [&](int line) {
        return it.q_start + min(max(it.top + line, 0), q_len - 1);
      });
  copy_step(0);
  wait_for_copies();
  __syncthreads();

  Warp<T, D, BN> results(of_q, warp, lane);
  int stage = 0;
#pragma unroll 1
  for (; step < steps; ++step, stage ^= 1) {
    if constexpr (FP8) {  // it arrived in the place of a second tile
      widen_tile<D, BN, THREADS>(of_k, of_k + TILE);
      widen_tile<D, BN, THREADS>(of_v, of_v + TILE);
      __syncthreads();
    }
    if (step + 1 < steps) {
      copy_step(stage ^ 1);
      if (threadIdx.x < BN)
        slots[stage * BN + threadIdx.x] =
            slot_of((step + 2) * BN + threadIdx.x);
    }
    const int key = step * BN;
    if (key < end) {
      const unsigned at = FP8 ? 0 : stage * TILE;
      float s[MT][T::NT][4] = {};
      results.multiply(s, of_k + at);
      if (key + BN > whole)  // only tiles at an edge are masked
        mask(s, ahead + my_top + lane / 4, key + lane % 4 * 2, 1 << 30, 0,
             k_len);
      results.rescale(s, power);
      results.add(s, power, of_v + at);
    }
    wait_for_copies();
    __syncthreads();
  }

  // Computed once more, so that it need not stay in registers meanwhile.
  const Item<BM, BN> now(work, starts, lengths, number / parts, parts);
  const float by_scale = FP8 ? scales[kv_heads + kv_head] : 1.0f;
  if (now.count == 1) {
    store_results<true>(results.o, results.base, results.sum, by_scale,
                        my_top + lane / 4, now.q_start, now.q_len,
                        out + (long long)head * d, out_stride, d, lse, heads,
                        head);
    return;
  }
  // --8<-- [start:store]
  float2* const tops =
      reinterpret_cast<float2*>(partials + (long long)gridDim.x * (BM * D));
#pragma unroll
  for (int i = 0; i < MT * 2; ++i) {
    const int line =
        warp * (16 * MT) + lane / 4 + i / 2 * 16 + i % 2 * 8;  // in the tile
    float total = results.sum[i / 2][i % 2];
    total += __shfl_xor_sync(~0u, total, 1);
    total += __shfl_xor_sync(~0u, total, 2);
    if (now.top + line < 0 || now.top + line >= now.q_len) continue;
    const long long row = (long long)blockIdx.x * BM + line;
    if (lane % 4 == 0)
      tops[row] = make_float2(results.base[i / 2][i % 2], total);
    float* const to = partials + row * D + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
      *reinterpret_cast<float2*>(to + n * 8) =
          make_float2(results.o[i / 2][n][i % 2 * 2] * by_scale,
                      results.o[i / 2][n][i % 2 * 2 + 1] * by_scale);
  }
  // --8<-- [end:store]
}
// --8<-- [end:kernel]

// Adds the parts of each item that has more than one, always in the same order.
// D, BM, BN and `parts` are those of flash_parts. Grid: items x heads x pieces,
// of which pieces vary fastest; a thread computes 4 columns of a row of the
// tile.
// --8<-- [start:merge]
constexpr int MERGE_THREADS = 128;

template <int D, int BM, int BN>
__global__ void __launch_bounds__(MERGE_THREADS)
    merge_parts(const float* partials, __nv_bfloat16* __restrict__ out,
                int out_stride, float* __restrict__ lse, int heads, int d,
                int parts, int items, const int* __restrict__ work,
                const int* __restrict__ starts,
                const int* __restrict__ lengths) {
  constexpr int FOURS = D / 4, PIECES = BM * FOURS / MERGE_THREADS;
  static_assert(BM * FOURS % MERGE_THREADS == 0, "pieces");
  begin_next();
  const int piece = blockIdx.x % PIECES, head = blockIdx.x / PIECES % heads,
            item = blockIdx.x / PIECES / heads;
  const Item<BM, BN> it(work, starts, lengths, item, parts);
  const int i = piece * MERGE_THREADS + threadIdx.x;
  const int line = i / FOURS, column = i % FOURS * 4, row = it.top + line;
  wait_for_previous();
  if (it.count < 2 || row < 0 || row >= it.q_len || column >= d) return;

  // Part p of this row is row `first + p * apart` of the sums.
  const long long first = ((long long)item * parts * heads + head) * BM + line,
                  apart = (long long)heads * BM;
  const float2* const tops =
      reinterpret_cast<const float2*>(partials + (long long)items * parts *
                                                     heads * (BM * D)) +
      first;
  const float* const from = partials + first * D + column;
  float most = LOWEST;
#pragma unroll 8  // eight loads are under way at once
  for (int p = 0; p < it.count; ++p)
    most = fmaxf(most, __ldcg(tops + p * apart).x);
  float sum = 0.0f;
  float4 total = {0, 0, 0, 0};
#pragma unroll 8
  for (int p = 0; p < it.count; ++p) {
    const float2 top = __ldcg(tops + p * apart);
    const float4 x =
        __ldcg(reinterpret_cast<const float4*>(from + p * apart * D));
    const float weight = power_of_two(top.x - most);  // 0 without keys
    sum += weight * top.y;
    total.x += weight * x.x, total.y += weight * x.y;
    total.z += weight * x.z, total.w += weight * x.w;
  }
  const float by = 1.0f / sum;  // a query sees its own key
  const long long at = it.q_start + row;
  *reinterpret_cast<uint2*>(out + at * out_stride + (long long)head * d +
                            column) =
      make_uint2(pack(total.x * by, total.y * by),
                 pack(total.z * by, total.w * by));
  if (lse && column == 0)
    lse[at * heads + head] = (most + log2f(sum)) * 0.693147181f;
}
// --8<-- [end:merge]

// Instances that are compiled by the tests:
// @instance flash_parts<64,128,64,4,2>
// @instance flash_parts<64,128,64,8,1>
// @instance flash_parts<80,64,64,4,2>
// @instance flash_parts<96,64,64,4,2>
// @instance flash_parts<128,128,64,4,2>
// @instance flash_parts<256,64,32,4,2>
// @instance flash_parts<64,128,64,4,2,__nv_fp8_e4m3>
// @instance flash_parts<80,64,64,4,2,__nv_fp8_e4m3>
// @instance flash_parts<128,128,64,4,2,__nv_fp8_e4m3>
// @instance flash_parts<256,64,32,4,2,__nv_fp8_e4m3>
// @instance merge_parts<64,128,64>
// @instance merge_parts<80,64,64>
// @instance merge_parts<256,64,32>
