// Attention of prompts on Hopper, over keys and values in blocks: the kernel of
// tensor/attention/flash_hopper.cu, whose TMA follows tables of blocks.
//
//   Work                an item of work: queries of a head, and their keys
//   meet_consumer       a barrier of the threads of one consumer
//   flash_hopper_paged  the kernel
//
// requires: sm_90a
#include "hopper/attention_softmax.cuh"
#include "hopper/attention_tma.cuh"
#include "hopper/attention_wgmma.cuh"
#include "hopper/handover.cuh"
#include "ptx/overlap.cuh"

// out = softmax(scale * q k^T) v for each head, as flash.cu with PAGED and a
// causal mask. Query i of the q_len of a sequence is the token at position i +
// k_len - q_len, and sees the keys up to its own; no sequence has more queries
// than keys. Values of keys in [0, k_len) must be finite. What else lies in the
// cache may be NaN, also within the last block.
//
// D: elements of a head, 64 or 128.
// CONSUMERS: warpgroups that multiply, 2 or 3, with 64 queries each; one more
//   warpgroup copies.
// BN: keys that a block takes at a time, a multiple of 16 and of BLOCK.
// STAGES: buffers for tiles of keys, and as many for values.
// Q_STAGES: buffers for queries.
// BLOCK: tokens of a block of the cache, a multiple of 8.
// PINGPONG: whether warpgroups take turns: one multiplies while the other
//   computes its softmax.
//
// Q, K, V: tensors of five axes, as copy_box says. Q has rows of tokens, in
//   boxes of 64 tokens and D elements. In K and V a block of BLOCK tokens has
//   the place of a sequence, and a part of 64 elements that of a head; a box is
//   a part of a block. out: rows of heads x D elements, `out_stride` elements
//   apart, which begin at multiples of 16 bytes. lse: null, or the natural
//   logarithm of each query's sum of exponentials, [tokens, heads]. power:
//   scale * log2(e) > 0.
//
// work: `rows` pairs of a sequence and a tile of its queries, as flash.py
// orders them for tiles of 64 * CONSUMERS queries; the first -1 ends them.
// starts, lengths, tables (rows of `width`): those of batch.py. An item is a
// row of `work` for one head; blocks draw items until there are no more. drawn:
// two numbers, which are 0 before and after: how many items were drawn, and how
// many blocks have ended.
//
// Grid: at most a block for each SM. Dynamic shared memory:
// flash_hopper_paged.py computes its size.

// An item of work: the queries of a head in rows from `row` to before `end`.
// The first of them is at position `at`, and they see `keys` keys; 0 keys mean
// that there are no more items.
struct Work {
  int head, row, end, at, keys;
};

// --8<-- [start:words]
// A barrier for the 128 threads of a consumer. Barriers below 8 are for turns.
__device__ __forceinline__ void meet_consumer(int consumer) {
  sync_at<128>(8 + consumer);
}
// --8<-- [end:words]

// --8<-- [start:kernel]
template <int D, int CONSUMERS, int BN, int STAGES, int Q_STAGES, int BLOCK,
          bool PINGPONG>
__global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1)
    flash_hopper_paged(const __grid_constant__ CUtensorMap Q,
                       const __grid_constant__ CUtensorMap K,
                       const __grid_constant__ CUtensorMap V,
                       __nv_bfloat16* __restrict__ out, int out_stride,
                       float* __restrict__ lse, unsigned* __restrict__ drawn,
                       int heads, int kv_heads, float power, int rows,
                       const int* __restrict__ work,
                       const int* __restrict__ starts,
                       const int* __restrict__ lengths,
                       const int* __restrict__ tables, int width) {
  // Bytes of a tile of keys or values and of the queries of a warpgroup, and of
  // their parts of 64 columns.
  constexpr int BM = 64 * CONSUMERS, TILE = BN * D * 2, PART = BN * 128;
  constexpr int QUERIES = 64 * D * 2, Q_PART = 64 * 128, PARTS = D / 64;
  static_assert((D == 64 || D == 128) && BN % 16 == 0, "tiles");
  static_assert(CONSUMERS == 2 || CONSUMERS == 3, "registers, and turns");
  // The swizzle repeats after 8 tokens.
  static_assert(BLOCK % 8 == 0 && BN % BLOCK == 0, "blocks of the cache");
  extern __shared__ unsigned char shared[];
  __shared__ Barrier q_full[Q_STAGES][CONSUMERS], q_empty[Q_STAGES][CONSUMERS],
      k_full[STAGES], k_empty[STAGES], v_full[STAGES], v_empty[STAGES];
  __shared__ Slot<Work> items[CONSUMERS];  // the next of each warpgroup
  // The swizzle wants tiles at multiples of 1024 bytes.
  const unsigned begin = shared_address(shared), of_k = (begin + 1023) & ~1023u,
                 of_v = of_k + STAGES * TILE, of_q = of_v + STAGES * TILE;
  const int warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0);
  const int lane = threadIdx.x % 32;

  begin_next();
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      init(&k_full[s], 1), init(&v_full[s], 1);
      init(&k_empty[s], 4 * CONSUMERS), init(&v_empty[s], 4 * CONSUMERS);
    }
    for (int s = 0; s < Q_STAGES; ++s)
      for (int i = 0; i < CONSUMERS; ++i)
        init(&q_full[s][i], 1), init(&q_empty[s][i], 4);
    for (int i = 0; i < CONSUMERS; ++i) init(items[i]);
    fence_init();
  }
  __syncthreads();
  wait_for_previous();

  if (warpgroup == 0) {
    // --8<-- [start:producer]
    give_registers_back<CONSUMERS == 2 ? 40 : 32>();
    if (threadIdx.x > 0) return;
    prefetch(Q), prefetch(K), prefetch(V);
    Ring<Q_STAGES> q;
    Ring<STAGES> k, v;
    // A tile of keys or values: its blocks in the cache, how many of them some
    // query sees, and the first part of its head.
    struct Tile {
      const int* blocks;
      int count, part;
    } of_keys, of_values;
    of_values.count = 0;
    Work w = {};
    int handed = 0;
    const auto copy_tile = [&](unsigned to, const CUtensorMap& map,
                               const Tile& tile, Barrier* full, Barrier* empty,
                               unsigned parity) {
      constexpr int ONCE = BN / BLOCK < 4 ? BN / BLOCK : 4;
#pragma unroll
      for (int i = 0; i < BN / BLOCK; i += ONCE) {
        int block[ONCE];  // the first load before the buffer is free
#pragma unroll
        for (int j = 0; j < ONCE; ++j)
          block[j] = i + j < tile.count ? tile.blocks[i + j] : 0;
        if (i == 0) {
          wait(empty, parity ^ 1);
          arrive_and_expect(full, tile.count * BLOCK * D * 2);
        }
#pragma unroll
        for (int j = 0; j < ONCE; ++j)
          if (i + j < tile.count)
            for (int part = 0; part < PARTS; ++part)
              copy_box(to + part * PART + (i + j) * BLOCK * 128, map, 0,
                       tile.part + part, block[j], full);
      }
    };
    const auto copy_values = [&] {
      copy_tile(of_v + v.stage * TILE, V, of_values, &v_full[v.stage],
                &v_empty[v.stage], v.parity);
      v.advance();
    };
    // Hands each warpgroup the queries of an item, and the item.
    const auto hand_out = [&] {
#pragma unroll 1
      for (int i = 0; i < CONSUMERS; ++i) {
        if (w.keys > 0) {
          Barrier* const full = &q_full[q.stage][i];
          wait(&q_empty[q.stage][i], q.parity ^ 1);
          arrive_and_expect(full, QUERIES);
          copy_box(of_q + (q.stage * CONSUMERS + i) * QUERIES, Q,
                   w.row + i * 64, w.head, 0, full);
        }
        hand_over(items[i], w, handed);
      }
      handed ^= 1;
      q.advance();
    };
    int next;
    for (int item = blockIdx.x; item < rows * heads; item = next) {
      const int sequence = work[item / heads * 2];
      if (sequence < 0) break;
      // The first item of a block is its own number. The next one is drawn long
      // before it is needed.
      next = gridDim.x + atomicAdd(drawn, 1);
      // Tiles begin at positions that are multiples of BM: the first one of a
      // sequence may have fewer queries, and so may the last.
      const int start = starts[sequence], count = starts[sequence + 1] - start;
      const int ahead = lengths[sequence] - count;  // the first one's position
      const int top = work[item / heads * 2 + 1] * BM - ahead % BM;
      const int first = max(top, 0), end = min(top + BM, count);
      w = {item % heads, start + first, start + end, ahead + first,
           max(1, ahead + end)};
      of_keys.blocks = tables + (long long)sequence * width;
      of_keys.part = w.head * kv_heads / heads * PARTS;
#pragma unroll 1
      for (int key = 0; key < w.keys; key += BN) {
        of_keys.count = min(BN, w.keys - key + BLOCK - 1) / BLOCK;
        copy_tile(of_k + k.stage * TILE, K, of_keys, &k_full[k.stage],
                  &k_empty[k.stage], k.parity);
        k.advance();
        // Buffers become free in this order: first those of keys; that of
        // queries last, where there is only one.
        if (of_values.count > 0) copy_values();
        if (key == 0) hand_out();
        of_values = of_keys;
        of_keys.blocks += BN / BLOCK;
      }
    }
    if (of_values.count > 0) copy_values();
    w.keys = 0;
    hand_out();
    // The last block to end leaves zeros behind.
    __threadfence();
    if (atomicInc(drawn + 1, gridDim.x - 1) == gridDim.x - 1) *drawn = 0;
    // --8<-- [end:producer]
  } else {
    take_registers<CONSUMERS == 2 ? 232 : 160>();
    const int me = warpgroup - 1;  // among the consumers
    const int my_turn = 1 + me, their_turn = 1 + (me + 1) % CONSUMERS;
    const int row = me * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;
    Ring<Q_STAGES> q;
    Ring<STAGES> k, v;
    float s[BN / 2], o[D / 2];  // scores, results
    unsigned p[BN / 4];         // weights, the factors of results
    Softmax<BN> softmax;

    const auto release = [&](Barrier* barrier) {
      if (lane == 0) arrive(barrier);
    };
    const auto start_scores = [&] {
      wait(&k_full[k.stage], k.parity);
      if (PINGPONG) wait_for_turn(my_turn);
      fence_sums();
      const Factor a(of_q + (q.stage * CONSUMERS + me) * QUERIES),
          b(of_k + k.stage * TILE);
#pragma unroll
      for (int kk = 0; kk < D / 16; ++kk)
        multiply(s, a.further(kk / 4 * Q_PART + kk % 4 * 32),
                 b.further(kk / 4 * PART + kk % 4 * 32), kk > 0);
      close_products();
    };
    // --8<-- [start:values]
    // The weight of a key that no query sees is zero, but its place among the
    // values may hold NaN, and zero times NaN is NaN. So the rows from `seen`
    // on become zeros. Each consumer does that for itself: if another one
    // writes to the same place, it writes the same.
    const auto clear_values = [&](int seen) {
      if (seen == 0) return;  // the whole tile is seen
#pragma unroll 1
      for (int i = seen * 8 + threadIdx.x % 128; i < BN * 8; i += 128)
        for (int part = 0; part < PARTS; ++part)
          *reinterpret_cast<uint4*>(shared + (of_v - begin) + v.stage * TILE +
                                    part * PART + i * 16) =
              make_uint4(0, 0, 0, 0);
      fence_for_tma();  // and for products
      meet_consumer(me);
    };
    // add: whether o holds results already. last: this is the item's last tile.
    const auto start_values = [&](bool add, bool last, const Work& w) {
      wait(&v_full[v.stage], v.parity);
      if (last) clear_values(w.keys % BN);
      fence_sums();
      const Factor b(of_v + v.stage * TILE, PART);
#pragma unroll
      for (int kk = 0; kk < BN / 16; ++kk)
        multiply(o, p + kk * 4, b.further(kk * 2048), kk > 0 || add);
      close_products();
    };
    // --8<-- [end:values]

    // Receives the next item. Its first scores follow the last scores of the
    // item before, whose last weights are not yet multiplied.
    int received = 0;  // parity of the next item
    const auto next_item = [&](Work& w) {
      w = receive(items[me], received);
      received ^= 1;
      if (w.keys == 0) return false;
      wait(&q_full[q.stage][me], q.parity);
      return true;
    };
    // The scores are there: frees their factors, and masks what is not seen.
    const auto finish_scores = [&](const Work& w, int key) {
      arrived(s);
      release(&k_empty[k.stage]);
      k.advance();
      const bool end = key + BN >= w.keys;
      if (end) release(&q_empty[q.stage][me]);
      q.advance_if(end);
      if (key + BN > min(w.keys, w.at + me * 64 + 1))
        mask<true>(s, key + lane % 4 * 2, w.keys, w.at + row);
    };
    const auto store = [&](const Softmax<BN>& softmax, const Work& w) {
      softmax.store(o, w.row + row, w.end, 0, out, out_stride, heads, w.head,
                    lse);
    };

    if (PINGPONG && me == CONSUMERS - 1) pass_turn(their_turn);
    Work w;
    if (next_item(w)) {
      start_scores();
      if (PINGPONG) pass_turn(their_turn);
      wait_for_products<0>();
      finish_scores(w, 0);
      softmax.begin();
      softmax.raise(s, power);
      softmax.weights(s, p, power, [] {}, true);

      // --8<-- [start:loop]
      bool add = false;  // o holds results of this item already
      for (int key = BN;; key += BN) {
        Work next = w;
        const bool last = key >= w.keys;
        if (last) {
          key = 0;
          if (!next_item(next)) break;
        }
        start_scores();              // of this step,
        start_values(add, last, w);  // of the weights of the step before
        if (PINGPONG) pass_turn(their_turn);
        wait_for_products<1>();
        finish_scores(next, key);
        const Softmax<BN> before = softmax;
        if (last) softmax.begin();
        bool rises = last && softmax.raise(s, power);
        const auto finish_values = [&] {
          wait_for_products<0>();
          arrived(o), arrived(p);
          release(&v_empty[v.stage]);
          v.advance();
        };
        if (!softmax.weights(s, p, power, finish_values)) {
          rises |= softmax.raise(s, power);
          softmax.weights(s, p, power, [] {}, true);
        }
        if (last)
          store(before, w);
        else if (rises)
          softmax.scale(o);
        add = !last, w = next;
      }
      // --8<-- [end:loop]
      start_values(add, true, w);
      wait_for_products<0>();
      arrived(o);
      store(softmax, w);
    }
    if (PINGPONG && me == 0) wait_for_turn(my_turn);  // one is left over
  }
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance flash_hopper_paged<64,2,128,2,2,16,true>
// @instance flash_hopper_paged<128,2,128,2,2,16,true>
