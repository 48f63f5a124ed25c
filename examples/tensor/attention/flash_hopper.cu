// Attention over many query tokens on Hopper, as FlashAttention-3 arranges it:
// a thread copies tiles through the TMA; warpgroups multiply them by `wgmma`
// and take turns, so that the softmax of one runs under the products of others.
//
//   Work          an item of work: queries of a head, and their keys
//   flash_hopper  the kernel
//
// requires: sm_90a
#include "hopper/attention_softmax.cuh"
#include "hopper/attention_tma.cuh"
#include "hopper/attention_wgmma.cuh"
#include "hopper/handover.cuh"

// An item of work: 64 * CONSUMERS queries of a head from row `top` on, and in
// `steps` the number of their tiles of keys: at least one, even if it is masked
// as a whole. With 0 steps there are no more items.
struct Work {
  int sequence, head, top, steps;
};

// out = softmax(scale * q k^T) v for each head of each sequence; all sequences
// have q_len queries and k_len keys. The last query is the token of the last
// key. A query that sees no key gets zeros, and -inf as its log-sum-exp. Values
// must be finite, even those that no query sees.
//
// Q, K, V: tensors of five axes, as copy_box says, with boxes of 64, BN and BN
// tokens. out: rows of heads x D elements, `out_stride` elements apart and at
// multiples of 16 bytes. lse: null, or the natural logarithm of each query's
// sum of exponentials, [tokens, heads]. power: scale * log2(e) > 0.
//
// Blocks draw items of work, tiles of queries of a head, until there are no
// more: `items` is tiles * heads * sequences, at least as many as blocks, and
// `drawn` is 0 before and after. Heads come in groups of `together`, whose keys
// and values should fit into L2; tiles with many keys come first in a group.
// times: null, unless TIMED. Grid: a block for each SM, or fewer; a multiple of
// CLUSTER. Dynamic shared memory: flash_hopper.py says how much.
//
//   D          elements of a head: 64 or 128
//   CONSUMERS  warpgroups that multiply, 64 queries each; one more copies
//   BN         keys in a step: a multiple of 16
//   STAGES     buffers for tiles of keys, and as many for tiles of values
//   Q_STAGES   buffers for queries
//   CAUSAL     whether a query sees only the keys up to its own
//   PINGPONG   whether warpgroups take turns; off to see what that is worth
//   OVERLAP    whether the softmax runs under products of its own warpgroup;
//              off to see what that is worth
//   CLUSTER    2 for blocks in pairs, with D = 128: a pair has 128 * CONSUMERS
//              queries of a head, and each block copies half of every tile of
//              keys and values for both; else 1
//   TIMED      whether each warpgroup of block 0 leaves in `times` the cycles
//              of five events of each of its first 64 steps
//   MAXIMA     whether maxima of scores are looked for in every step, not only
//              where a base was too low
// --8<-- [start:kernel]
template <int D, int CONSUMERS, int BN, int STAGES, int Q_STAGES, bool CAUSAL,
          bool PINGPONG, bool OVERLAP, int CLUSTER = 1, bool TIMED = false,
          bool MAXIMA = false>
__global__ void __cluster_dims__(CLUSTER)
    __launch_bounds__(128 * (CONSUMERS + 1), 1)
        flash_hopper(const __grid_constant__ CUtensorMap Q,
                     const __grid_constant__ CUtensorMap K,
                     const __grid_constant__ CUtensorMap V,
                     __nv_bfloat16* __restrict__ out, int out_stride,
                     float* __restrict__ lse, int* __restrict__ drawn,
                     int heads, int kv_heads, int q_len, int k_len, int tiles,
                     int items, int together, float power,
                     unsigned* __restrict__ times) {
  // Bytes of a tile of keys or values, of a warpgroup's queries, and of the
  // parts of 64 columns of both.
  constexpr int BM = 64 * CONSUMERS, TILE = BN * D * 2, PART = BN * 128;
  constexpr int QUERIES = 64 * D * 2, Q_PART = 64 * 128;
  static_assert((D == 64 || D == 128) && BN % 16 == 0, "tiles");
  static_assert(CLUSTER == 1 || (CLUSTER == 2 && D == 128), "parts");
  extern __shared__ unsigned char shared[];
  __shared__ Barrier q_full[Q_STAGES][CONSUMERS], q_empty[Q_STAGES][CONSUMERS],
      k_full[STAGES], k_empty[STAGES], v_full[STAGES], v_empty[STAGES];
  __shared__ Slot<Work> work[CONSUMERS];  // the next item of each warpgroup
  // The swizzle wants tiles at multiples of 1024 bytes.
  const unsigned of_k = (shared_address(shared) + 1023) & ~1023u,
                 of_v = of_k + STAGES * TILE, of_q = of_v + STAGES * TILE;
  const int warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0);
  const int lane = threadIdx.x % 32, rank = blockIdx.x % CLUSTER;

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      init(&k_full[s], 1), init(&v_full[s], 1);
      init(&k_empty[s], 4 * CONSUMERS * CLUSTER);
      init(&v_empty[s], 4 * CONSUMERS * CLUSTER);
    }
    for (int s = 0; s < Q_STAGES; ++s)
      for (int i = 0; i < CONSUMERS; ++i)
        init(&q_full[s][i], 1), init(&q_empty[s][i], 4);
    for (int i = 0; i < CONSUMERS; ++i) init(work[i]);
    fence_init();
  }
  CLUSTER > 1 ? sync_cluster() : __syncthreads();

  // --8<-- [start:work]
  const int ahead = k_len - q_len;  // position of the first query
  const auto work_of = [&](int item) -> Work {
    const int heads_before = item / (tiles * together) * together;
    const int rest = item - heads_before * tiles;
    const int now = min(together, items / tiles - heads_before);
    const int top = (tiles - 1 - rest / now) * (BM * CLUSTER);
    const int all_heads = heads_before + rest % now;
    int keys = k_len;
    if (CAUSAL)
      keys = max(1, min(keys, ahead + min(top + BM * CLUSTER, q_len)));
    return {all_heads / heads, all_heads % heads, top + rank * BM,
            (keys + BN - 1) / BN};
  };
  // --8<-- [end:work]

  if (warpgroup == 0) {
    // --8<-- [start:producer]
    give_registers_back<CONSUMERS == 2 ? 40 : 32>();
    if (threadIdx.x > 0) return;
    prefetch(Q), prefetch(K), prefetch(V);
    Ring<Q_STAGES> q;
    Ring<STAGES> k, v;
    Work w = {}, of_keys, of_values;  // `top` of the last two: a token
    of_values.top = -1;
    int item = blockIdx.x / CLUSTER, next, handed = 0;
    const auto copy_tile = [&](unsigned to, const CUtensorMap& map,
                               const Work& w, Barrier* full) {
      arrive_and_expect(full, TILE);
      if (CLUSTER == 1)
        copy_box(to, map, w.top, w.head, w.sequence, full);
      else
        copy_to_both(to + rank * PART, map, w.top, rank, w.head, w.sequence,
                     full);
    };
    const auto copy_values = [&] {
      wait(&v_empty[v.stage], v.parity ^ 1);
      copy_tile(of_v + v.stage * TILE, V, of_values, &v_full[v.stage]);
      v.advance();
    };
    // Give each warpgroup the queries of an item, and the item itself.
    const auto hand_out = [&] {
#pragma unroll 1
      for (int i = 0; i < CONSUMERS; ++i) {
        if (w.steps > 0) {
          Barrier* const full = &q_full[q.stage][i];
          wait(&q_empty[q.stage][i], q.parity ^ 1);
          arrive_and_expect(full, QUERIES);
          copy_box(of_q + (q.stage * CONSUMERS + i) * QUERIES, Q,
                   w.top + i * 64, w.head, w.sequence, full);
        }
        hand_over(work[i], w, handed);
      }
      handed ^= 1;
      q.advance();
    };
    for (; item < items; item = next) {
      // The first item of a block is its number. The block that draws the last
      // number leaves 0 behind. A block draws its next item long before it
      // needs it.
      next = gridDim.x / CLUSTER;
      if (CLUSTER > 1) {
        next += item;
      } else {
        next += atomicAdd(drawn, 1);
        if (next == (int)gridDim.x + items - 1) *drawn = 0;
      }
      w = work_of(item);
      of_keys.sequence = w.sequence;
      of_keys.head = w.head * kv_heads / heads;
#pragma unroll 1
      for (int step = 0; step < w.steps; ++step) {
        wait(&k_empty[k.stage], k.parity ^ 1);
        of_keys.top = step * BN;
        copy_tile(of_k + k.stage * TILE, K, of_keys, &k_full[k.stage]);
        k.advance();
        // Copies come in the order in which buffers become free: keys first,
        // then values, then queries, which may have only one buffer.
        if (of_values.top >= 0) copy_values();
        if (step == 0) hand_out();
        of_values = of_keys;
      }
    }
    copy_values();
    w.steps = 0;
    hand_out();
    // --8<-- [end:producer]
  } else {
    take_registers<CONSUMERS == 2 ? 232 : 160>();
    const int me = warpgroup - 1;  // among the consumers
    const int my_turn = 1 + me, their_turn = 1 + (me + 1) % CONSUMERS;
    const int row = me * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;
    Ring<Q_STAGES> q;
    Ring<STAGES> k, v;
    float s[BN / 2], o[D / 2];  // scores, results
    unsigned p[BN / 4];         // weights that are multiplied into results
    Softmax<BN> softmax;

    const auto release = [&](Barrier* barrier) {
      if (lane == 0) arrive(barrier);
    };
    const auto release_tile = [&](Barrier* barrier) {
      if (CLUSTER == 1)
        release(barrier);
      else if (lane < CLUSTER)
        arrive_in(barrier, lane);
    };
    // --8<-- [start:products]
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
    const auto start_values = [&](bool add) {
      wait(&v_full[v.stage], v.parity);
      fence_sums();
      const Factor b(of_v + v.stage * TILE, PART);
#pragma unroll
      for (int kk = 0; kk < BN / 16; ++kk)
        multiply(o, p + kk * 4, b.further(kk * 2048), kk > 0 || add);
      close_products();
    };
    // --8<-- [end:products]

    // Receive the next item. Its first scores follow the last scores of the
    // item before, whose last weights are not yet multiplied.
    int received = 0;  // parity of the next item
    const auto next_item = [&](Work& w) {
      w = receive(work[me], received);
      received ^= 1;
      if (w.steps == 0) return false;
      wait(&q_full[q.stage][me], q.parity);
      return true;
    };
    // The scores are there: free their factors, and mask keys that are not
    // seen.
    const auto finish_scores = [&](const Work& w, int step) {
      arrived(s);
      release_tile(&k_empty[k.stage]);
      k.advance();
      const bool end = step + 1 == w.steps;
      if (end) release(&q_empty[q.stage][me]);
      q.advance_if(end);
      const int key = step * BN, top = w.top + me * 64;
      const int whole = CAUSAL ? min(k_len, ahead + top + 1) : k_len;
      if (key + BN > whole)
        mask<CAUSAL>(s, key + lane % 4 * 2, k_len, ahead + w.top + row);
    };

    int events = 0;
    const auto mark = [&] {
      if (TIMED && blockIdx.x == 0 && threadIdx.x % 128 == 0 && events < 320)
        times[me * 320 + events++] = clock();
    };

    if (PINGPONG && me == CONSUMERS - 1) pass_turn(their_turn);
    Work w;
    next_item(w);  // there are at least as many items as blocks
    start_scores();
    if (PINGPONG) pass_turn(their_turn);
    wait_for_products<0>();
    finish_scores(w, 0);
    softmax.begin();
    softmax.raise(s, power);
    softmax.weights(s, p, power, [] {}, true);

    // --8<-- [start:loop]
    bool add = false;  // o holds results of this item already
    for (int step = 1;; ++step) {
      Work next = w;
      const bool last = step == w.steps;
      if (last) {
        step = 0;
        if (!next_item(next)) break;
      }
      mark();
      start_scores();     // of this step,
      start_values(add);  // of the weights of the step before
      if (PINGPONG) pass_turn(their_turn);
      mark();
      wait_for_products<OVERLAP ? 1 : 0>();
      mark();
      finish_scores(next, step);
      const Softmax<BN> before = softmax;
      if (last) softmax.begin();
      bool rises = (last || MAXIMA) && softmax.raise(s, power);
      const auto finish_values = [&] {
        mark();
        wait_for_products<0>();
        arrived(o), arrived(p);
        release_tile(&v_empty[v.stage]);
        v.advance();
      };
      if (!softmax.weights(s, p, power, finish_values)) {
        rises |= softmax.raise(s, power);
        softmax.weights(s, p, power, [] {}, true);
      }
      mark();
      if (last)
        before.store(o, w.top + row, q_len, w.sequence, out, out_stride, heads,
                     w.head, lse);
      else if (rises)
        softmax.scale(o);
      add = !last, w = next;
    }
    // --8<-- [end:loop]
    start_values(add);
    wait_for_products<0>();
    arrived(o);
    softmax.store(o, w.top + row, q_len, w.sequence, out, out_stride, heads,
                  w.head, lse);
    if (PINGPONG && me == 0) wait_for_turn(my_turn);  // one turn is left over
  }
  if (CLUSTER > 1) sync_cluster();  // the other block may still arrive here
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance flash_hopper<128,2,128,2,2,false,true,true>
// @instance flash_hopper<128,2,128,2,2,true,true,true>
// @instance flash_hopper<128,2,176,2,1,false,false,true>
// @instance flash_hopper<128,2,176,2,1,false,true,true>
// @instance flash_hopper<128,2,176,2,1,true,false,true>
// @instance flash_hopper<128,2,176,2,1,false,true,true,2>
// @instance flash_hopper<128,2,176,2,1,false,true,true,1,false,true>
// @instance flash_hopper<64,2,128,2,2,false,true,true>
// @instance flash_hopper<64,2,128,2,2,true,true,true>
// @instance flash_hopper<64,3,128,2,2,false,true,true>
// @instance flash_hopper<64,3,128,2,2,true,true,true>
