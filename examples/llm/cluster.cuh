// What cluster.cu consists of, below its phases: how the blocks of a cluster
// hand results to each other, how weights stream into shared memory, and how
// one row is multiplied by them.
#pragma once
#include "gemv.cuh"
#include "rows.cuh"

constexpr int WARPS = 16, THREADS = WARPS * 32;
constexpr int SLOTS = 8;  // pieces of the ring that weights pass through

using Barrier = unsigned long long;

// --8<-- [start:barriers]
// An mbarrier counts arrivals, and bytes that are announced and not yet there;
// with the last of both its phase ends: 0, then 1, then 0 ... A phase that has
// not ended is waited for by its parity.
__device__ __forceinline__ void init(Barrier& barrier, int arrivals) {
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)),
      "r"(arrivals)
      : "memory");
}
// Arrive once, and announce bytes. Some of them may have come before.
__device__ __forceinline__ void expect(Barrier& barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(&barrier)),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void wait(Barrier& barrier, unsigned parity) {
  unsigned ended;
  do
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(ended)
        : "r"(shared_address(&barrier)), "r"(parity)
        : "memory");
  while (!ended);
}

// All threads of the cluster. Slow: it waits for all stores of all of them.
__device__ __forceinline__ void sync_cluster() {
  asm volatile(
      "barrier.cluster.arrive.release;\n"
      "barrier.cluster.wait.acquire;" ::
          : "memory");
}
__device__ __forceinline__ int rank_in_cluster() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// --8<-- [end:barriers]

// --8<-- [start:send]
// Store 8 or 16 bytes at the same place of every block's shared memory, this
// one's included. Each of their barriers counts the bytes as they arrive: who
// waits for all that it expects needs no other barrier, and nobody a fence,
// which would have to wait for every store that is on its way.
__device__ __forceinline__ unsigned in_block(unsigned address, int rank) {
  unsigned there;
  // volatile: computed where it is needed, not kept in registers.
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"(address), "r"(rank));
  return there;
}

template <int CLUSTER, class T>
__device__ __forceinline__ void send(void* to, T value, Barrier& barrier) {
  const unsigned at = shared_address(to), counted = shared_address(&barrier);
#pragma unroll
  for (int rank = 0; rank < CLUSTER; ++rank)
    if constexpr (sizeof(T) == 16)
      asm volatile(
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
          "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(in_block(at, rank)),
          "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w),
          "r"(in_block(counted, rank))
          : "memory");
    else
      asm volatile(
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 "
          "[%0], {%1, %2}, [%3];" ::"r"(in_block(at, rank)),
          "r"(value.x), "r"(value.y), "r"(in_block(counted, rank))
          : "memory");
}
// --8<-- [end:send]

// --8<-- [start:share]
// A block's share of a matrix: strips of 16 outputs. They come in tiles of a
// few strips, one to a slot of the ring, row after row as they are stored, so
// that a tile is one copy.
//
// 8 rows are read at once, 16 bytes of each: they are to be in different banks.
// Rows an odd multiple of 16 bytes long are; even multiples are copied row by
// row, 16 bytes further apart. Odd multiples of 8 (Q4_1 and 576 inputs) are if
// only every second row is taken: then the two outputs of a lane are 2g and 2g
// + 1, otherwise g and g + 8.
struct Share {
  int first, strips;     // of this block
  int blocks;            // of 32 weights, in a row
  int row_bytes, pitch;  // of a row, between rows in the slot
  int per_tile, tiles;   // strips of a tile, tiles of this block
  int by_tile;           // strip / per_tile is strip * by_tile >> 16
  int parts;             // warps that share the depth of a strip
};

template <class Format>
__device__ Share share_of(int outputs, int inputs, int rank, int cluster,
                          int slot_bytes) {
  Share s;
  const int all = outputs / 16, most = (all + cluster - 1) / cluster;
  s.first = all * rank / cluster;
  s.strips = all * (rank + 1) / cluster - s.first;
  s.blocks = inputs / 32;
  s.row_bytes = s.blocks * Format::BLOCK;
  s.pitch = s.row_bytes % 32 == 0 ? s.row_bytes + 16 : s.row_bytes;
  s.per_tile = min(16, slot_bytes / (16 * s.pitch));
  s.tiles = (s.strips + s.per_tile - 1) / s.per_tile;
  s.by_tile = (65536 + s.per_tile - 1) / s.per_tile;
  s.parts = max(2, WARPS / most);  // the same in all blocks, and so are sums
  return s;
}

// A warp's part of a product: of the strips `strip`, `strip` + step, ... the
// blocks from `from` to `to`.
struct Work {
  int strip, step, part, from, to;
};

__device__ inline Work work_of(const Share& s, int warp) {
  const int step = WARPS / s.parts, part = warp % s.parts;
  const int strip = warp / s.parts;
  return {strip < step ? strip : s.strips, step, part,
          s.blocks * part / s.parts, s.blocks * (part + 1) / s.parts};
}
// --8<-- [end:share]

// --8<-- [start:ring]
// Tiles of all matrices of all layers pass through SLOTS slots, one after the
// other. `full`: a tile is there; `read`: warps that are through with it. The
// last of them starts the copy of the tile that comes SLOTS later: nobody waits
// for room, and the ring runs ahead across phases and layers.
struct Ring {
  unsigned char* slots;
  int slot_bytes;
  Barrier* full;
  unsigned* read;
};

// Number `count` of a share's tiles, into slot `slot`; by one thread.
__device__ __forceinline__ void copy_tile(const Ring& ring, int slot,
                                          const Share& share, int count,
                                          const unsigned char* W) {
  const int strip = count * share.per_tile;
  const int rows = min(share.per_tile, share.strips - strip) * 16;
  expect(ring.full[slot], rows * share.row_bytes);
  W += (long long)(share.first + strip) * 16 * share.row_bytes;
  const bool whole = share.pitch == share.row_bytes;
  const int copies = whole ? 1 : rows;
  const int bytes = whole ? rows * share.row_bytes : share.row_bytes;
  const unsigned to = shared_address(ring.slots) + slot * ring.slot_bytes;
#pragma unroll 1
  for (int i = 0; i < copies; ++i)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1], %2, [%3];" ::"r"(to + i * share.pitch),
        "l"(__cvta_generic_to_global(W + (long long)i * bytes)), "r"(bytes),
        "r"(shared_address(ring.full + slot))
        : "memory");
}

// True in the last of `count` threads that come here.
__device__ __forceinline__ bool last_reader(unsigned& read, int count) {
  unsigned before;
  asm volatile("atom.acq_rel.cta.shared::cta.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "r"(shared_address(&read)), "r"(count - 1)
               : "memory");
  return before == count - 1;
}
// --8<-- [end:ring]

// --8<-- [start:integers]
// x is multiplied as integers of 16 bits: a scale for each 32 of them, as the
// weights have it. That is more exact than bf16 would be, and Q4_1's numbers
// are bytes after three instructions instead of bf16 after seven. The tensor
// cores multiply bytes; x has a high and a low one, x = 256 high + low, both
// with a sign.
//
// Of block b: 32 high bytes from 64 b on, 32 low ones behind; depths 4t to 4t +
// 3 and 16 + 4t to 16 + 4t + 3, which are lane t's, side by side. scales: what
// the integers are multiplied by, and the sum of x.
template <class F>
__device__ __forceinline__ void quantize(unsigned char* bytes, float2* scales,
                                         int count, F value) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int place = lane % 16 / 4 * 8 + lane / 16 * 4 + lane % 4;
#pragma unroll 1
  for (int b = warp; b < count / 32; b += WARPS) {
    const float x = value(b * 32 + lane);
    const float most = __uint_as_float(
        __reduce_max_sync(~0u, __float_as_uint(fabsf(x))));  // NaN is larger
    // 127 * 256: high stays below 128 when low is rounded up.
    const float inverse = most < 1e-30f ? 0.0f : 32512.0f / most;
    const int integer = __float2int_rn(x * inverse);
    const int high = (integer + 128) >> 8;
    bytes[b * 64 + place] = (unsigned char)high;
    bytes[b * 64 + 32 + place] = (unsigned char)(integer - high * 256);
    const float scale = most * (1.0f / 32512.0f);
    const int sum = __reduce_add_sync(~0u, integer);
    if (lane == 0) scales[b] = make_float2(scale, scale * sum);
  }
}

// A lane's bytes of a block of weights, those from 4t and from 16 + 4t on, and
// the block's scale and minimum.
__device__ __forceinline__ void load_bytes(Q4_1, const unsigned char* block,
                                           int t, unsigned& first,
                                           unsigned& second) {
  const unsigned word = reinterpret_cast<const unsigned*>(block + 4)[t];
  first = word & 0x0f0f0f0f, second = word >> 4 & 0x0f0f0f0f;
}
__device__ __forceinline__ float2 load_scale(Q4_1, const unsigned char* block) {
  return __half22float2(*reinterpret_cast<const __half2*>(block));
}
__device__ __forceinline__ void load_bytes(Q8_0, const unsigned char* block,
                                           int t, unsigned& first,
                                           unsigned& second) {
  const unsigned char* const at = block + 2 + t * 4;
  const int off = (size_t)at % 4;  // 0 or 2, as in gemv.cuh
  const unsigned* const words = reinterpret_cast<const unsigned*>(at - off);
  first = __funnelshift_r(words[0], words[1], off * 8);
  second = __funnelshift_r(words[4], words[5], off * 8);
}
__device__ __forceinline__ float2 load_scale(Q8_0, const unsigned char* block) {
  return Q8_0::scale(block);
}

// D += A B as in mma.cuh, of bytes with a sign, in int: A is 16 x 32, B 32 x 8.
// Four bytes in a register: a[0], a[1] columns 4t to 4t + 3 of rows g and g +
// 8, a[2], a[3] the same, columns + 16; b0, b1 likewise.
__device__ __forceinline__ void mma_bytes(int (&d)[4], const unsigned (&a)[4],
                                          unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// --8<-- [end:integers]

// --8<-- [start:dot]
// Products of two rows of W, low and high, with the blocks of x from `from` to
// `to`: this lane's part of them. One row of x needs one of the 8 columns of B;
// what the others are used for: four blocks after each other go into the same
// D, each by its own two columns, for the high and the low bytes, where the
// others hold zeros. So each lane has the sums of one block, and multiplies
// them by the scales of that one only.
template <class Format>
__device__ __forceinline__ float2 dot(const unsigned char* low,
                                      const unsigned char* high,
                                      const unsigned char* bytes,
                                      const float2* scales, int from, int to) {
  constexpr int BLOCK = Format::BLOCK;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  float2 sum = {0.0f, 0.0f};
#pragma unroll 2
  for (int b = from; b < to; b += 4) {
    // Column g: high or low bytes of block b + g / 2; behind `to` any bytes.
    const uint2 x =
        *reinterpret_cast<const uint2*>(bytes + b * 64 + g * 32 + t * 8);
    int product[4] = {};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (b + j >= to) break;
      unsigned w[4];
      load_bytes(Format(), low + (b + j) * BLOCK, t, w[0], w[2]);
      load_bytes(Format(), high + (b + j) * BLOCK, t, w[1], w[3]);
      const bool mine = g / 2 == j;
      mma_bytes(product, w, mine ? x.x : 0, mine ? x.y : 0);
    }
    if (b + t < to) {
      const float2 of_x = scales[b + t];
      const float2 of_low = load_scale(Format(), low + (b + t) * BLOCK);
      const float2 of_high = load_scale(Format(), high + (b + t) * BLOCK);
      sum.x += of_low.x * of_x.x * (float)(product[0] * 256 + product[1]) +
               of_low.y * of_x.y;
      sum.y += of_high.x * of_x.x * (float)(product[2] * 256 + product[3]) +
               of_high.y * of_x.y;
    }
  }
  return sum;
}
// --8<-- [end:dot]
