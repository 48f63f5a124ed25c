// Attention over many query tokens, as FlashAttention-2 computes it: a tile of
// queries meets the keys tile by tile, with an online softmax.
// requires: sm_80
#include "flash_step.cuh"
#include "ptx/overlap.cuh"

// out = softmax(scale * q k^T) v for each head, over the keys that a query may
// see. Queries are aligned to the end of their sequence: query i of q_len is
// the token at position p = i + k_len - q_len, and sees those keys from p -
// left to p + right that exist (right = 0: causal). A query that sees no key
// gets zeros, and -inf as its log-sum-exp. All values of a sequence must be
// finite, also of keys that a query does not see: they are multiplied by zero.
//
// D: elements of a head in a tile, a multiple of 16; d <= D.
// BM: queries of a block, a power of two and a multiple of 16 * WARPS.
// BN: keys that a block takes at a time, a multiple of 16.
// WARPS: warps of a block, at least BN / 32. BLOCKS: blocks that share an SM.
// PAGED: whether keys and values lie in blocks of a cache.
// ALIGNED: rows begin at multiples of 16 bytes, and d is a multiple of 8.
// SOFTCAP: whether scores become cap * tanh(scale * q k^T / cap).
// Cache: bf16, or FP8 with `scales` as in fp8.cuh. FP8 needs ALIGNED, and
//   kv_stride and d that are multiples of 16.
//
// q and out have rows of heads x d elements, `q_stride` and `out_stride`
// elements apart. Row `slot` of keys and values holds kv_heads x d; rows are
// `kv_stride` apart. lse: null, or the natural logarithm of each query's sum of
// exponentials, one row of `heads` for each row of q. Zeros fill a tile from
// column d on. power: scale * log2(e). With SOFTCAP power is cap * log2(e), and
// bend is 2 * log2(e) * scale / cap.
// expect: spills (on sm_89 a few words of one instance, FP8 with D = 128)
//
// Without PAGED all sequences have q_len queries and k_len keys, one sequence
// behind the other; items: sequences x tiles of queries in each. With PAGED
// starts, lengths and tables (rows of `width`) are those of batch.py, and
// `work` has `items` pairs of a sequence (-1: nothing to do) and a tile of it.
// Grid: items x heads, of which heads vary fastest. Items with many keys come
// first, so that the last blocks to run are short ones. Dynamic shared memory:
// flash.py computes its size.
//
// The bits of a query's result do not depend on other queries of the batch, nor
// on how many of its own sequence are computed at a time. Tiles of keys begin
// at multiples of BN from the sequence's first key, and what happens to a query
// depends on its own scores, tile by tile. A tile that only its neighbors see
// adds zeros to its sums and leaves its base as it is. A query also has always
// the same row of an instruction, since tiles of queries begin at positions
// that are multiples of BM; but that place makes no difference.
// --8<-- [start:kernel]
template <int D, int BM, int BN, int WARPS, int BLOCKS, bool PAGED,
          bool ALIGNED, bool SOFTCAP, class Cache = __nv_bfloat16>
__global__ void __launch_bounds__(WARPS * 32, BLOCKS)
    flash(const __nv_bfloat16* q, int q_stride, const Cache* keys,
          const Cache* values, int kv_stride, __nv_bfloat16* __restrict__ out,
          int out_stride, float* __restrict__ lse, int heads, int kv_heads,
          int d, float power, float bend, int left, int right, int items,
          int q_len, int k_len, const int* __restrict__ work,
          const int* __restrict__ starts, const int* __restrict__ lengths,
          const int* __restrict__ tables, int width, int block_size,
          const float* __restrict__ scales) {
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
  wait_for_previous();
  // --8<-- [start:order]
  const int item = blockIdx.x / heads, head = blockIdx.x % heads;
  int sequence, tile, q_start;
  if (PAGED) {
    sequence = work[2 * item], tile = work[2 * item + 1];
    if (sequence < 0) return;
    q_start = starts[sequence], q_len = starts[sequence + 1] - q_start;
    k_len = lengths[sequence];
  }
  const int ahead = k_len - q_len;  // position of the first query
  const int odd = ahead & (BM - 1);
  if (!PAGED) {
    const int tiles = (q_len + odd + BM - 1) / BM, sequences = items / tiles;
    sequence = item % sequences, tile = tiles - 1 - item / sequences;
    q_start = sequence * q_len;
  }
  // --8<-- [end:order]

  // --8<-- [start:range]
  // The keys that `count` queries from row `top` on see: each query sees all
  // keys of [whole_begin, whole_end), and none sees a key outside of [begin,
  // end).
  struct Range {
    int begin, end, whole_begin, whole_end;
  };
  const auto seen = [&](int top, int count) -> Range {
    const int first = max(top, 0), last = min(top + count, q_len) - 1;
    if (first > last) return {0, 0, 0, 0};
    return {max(0, ahead + first - left), min(k_len, ahead + last + right + 1),
            ahead + last - left, min(k_len, ahead + first + right + 1)};
  };
  const int top = tile * BM - odd, my_top = top + warp * (16 * MT);
  const Range of_block = seen(top, BM), mine = seen(my_top, 16 * MT);
  int step = of_block.begin / BN;
  const int steps =
      of_block.begin < of_block.end ? (of_block.end + BN - 1) / BN : step;
  // --8<-- [end:range]

  // --8<-- [start:slots]
  // Where a key lies. The last key stands for those behind it: they are masked,
  // but must not be NaN, because zero times NaN is NaN. In paged memory one
  // thread looks up a key of the tile after the next for all threads.
  const auto slot_of = [&](int key) {
    key = min(key, k_len - 1);
    if (!PAGED) return sequence * k_len + key;
    return tables[(long long)sequence * width + key / block_size] * block_size +
           key % block_size;
  };
  const int kv_head = head / (heads / kv_heads);
  const long long skip = (long long)kv_head * d;
  if (FP8) (SOFTCAP ? bend : power) *= scales[kv_head];
  const auto copy_step = [&](int step, int stage) {
    const auto row_of = [&](int line) {
      return PAGED ? slots[stage * BN + line] : slot_of(step * BN + line);
    };
    copy_tile<D, BN, THREADS, ALIGNED>(of_k + (FP8 ? TILE : stage * TILE),
                                       keys + skip, kv_stride, d, row_of);
    copy_tile<D, BN, THREADS, ALIGNED>(of_v + (FP8 ? TILE : stage * TILE),
                                       values + skip, kv_stride, d, row_of);
  };
  // --8<-- [end:slots]

  copy_tile<D, BM, THREADS, ALIGNED>(
      of_q, q + (long long)head * d, q_stride, d,
      [&](int line) { return q_start + min(max(top + line, 0), q_len - 1); });
  if (step < steps) {
    if (PAGED) {
      if (threadIdx.x < BN) {
        slots[threadIdx.x] = slot_of(step * BN + threadIdx.x);
        slots[BN + threadIdx.x] = slot_of((step + 1) * BN + threadIdx.x);
      }
      __syncthreads();
    }
    copy_step(step, 0);
  }
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
    // --8<-- [start:next]
    // The next tile arrives while this one is multiplied. The slots of the tile
    // after it take the place of this tile's slots.
    if (step + 1 < steps) {
      copy_step(step + 1, stage ^ 1);
      if (PAGED && threadIdx.x < BN)
        slots[stage * BN + threadIdx.x] =
            slot_of((step + 2) * BN + threadIdx.x);
    }
    // --8<-- [end:next]
    const int key = step * BN;
    if (key < mine.end) {
      const unsigned at = FP8 ? 0 : stage * TILE;
      float s[MT][T::NT][4] = {};
      results.multiply(s, of_k + at);
      if (SOFTCAP) bend_scores(s, bend);
      // Only tiles at an edge are masked.
      if (key < mine.whole_begin || key + BN > mine.whole_end)
        mask(s, ahead + my_top + lane / 4, key + lane % 4 * 2, left, right,
             k_len);
      results.rescale(s, power);
      results.add(s, power, of_v + at);
    }
    wait_for_copies();
    __syncthreads();
  }

  const float by_scale = FP8 ? scales[kv_heads + kv_head] : 1.0f;
  store_results<ALIGNED>(results.o, results.base, results.sum, by_scale,
                         my_top + lane / 4, q_start, q_len,
                         out + (long long)head * d, out_stride, d, lse, heads,
                         head);
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance flash<64,128,64,4,2,false,true,false>
// @instance flash<128,128,64,4,2,false,true,false>
// @instance flash<128,128,64,4,2,true,true,true>
// @instance flash<256,64,32,4,2,true,true,false>
// @instance flash<64,64,64,4,2,true,false,true>
// @instance flash<64,128,64,4,2,true,true,false,__nv_fp8_e4m3>
// @instance flash<128,128,64,4,2,true,true,false,__nv_fp8_e4m3>
// @instance flash<256,64,32,4,2,false,true,false,__nv_fp8_e4m3>
