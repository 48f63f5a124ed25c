// What cluster.cu consists of, below its phases: how the blocks of a cluster
// hand results to each other, and how weights stream into shared memory.
#pragma once
#include "gemv.cuh"
#include "rows.cuh"

constexpr int WARPS = 16, THREADS = WARPS * 32;
// Pieces of the ring that weights pass through.
template <class Format>
constexpr int SLOTS = Format::BLOCK > 20 ? 4 : 8;

using Barrier = unsigned long long;

// A pointer that is itself kept in memory. The compiler has to be told that it
// leads to shared memory: loads from an address of any kind take longer.
template <class T>
struct Shared {
  T* at;
  __device__ __forceinline__ operator T*() const {
    __builtin_assume(__isShared(at));
    return at;
  }
};

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
  Shared<unsigned char> slots;
  int slot_bytes;
  Shared<Barrier> full;
  Shared<unsigned> read;
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
