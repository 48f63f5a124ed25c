// Compaction and partition by blocks that stay, and that carry along how many
// elements precede their tiles: nobody waits for a prefix, only for numbers.
// requires: sm_90
#include "primitives/compaction/compact.cuh"
#include "ptx/bulk.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/tma.cuh"

#ifndef RESIDENT
#define RESIDENT 1  // blocks that an SM holds at least
#endif
#ifndef BUFFERS
#define BUFFERS 4  // tiles of a block in shared memory or on their way
#endif
#ifndef AHEAD
#define AHEAD 1  // tiles that a block has counted and not yet written
#endif
static_assert(AHEAD >= 1, "a barrier lies between count and write");
static_assert(BUFFERS >= AHEAD + 2, "one is counted, and the next one comes");

constexpr int STAGE_BYTES = TILE * (int)sizeof(T) + (FLAGS ? TILE : 0);

// How many stay in the tiles first .. end - 1, which all announce it. Called by
// a warp: each lane asks for LOOK words at once.
// --8<-- [start:between]
__device__ __forceinline__ Count between(const Word* words, int first, int end,
                                         unsigned number) {
  Count sum = 0;
  for (int at = first + threadIdx.x % 32; at < end; at += 32 * LOOK) {
    Count found[LOOK];
    bool all;
    do {
      all = true;
#pragma unroll
      for (int k = 0; k < LOOK; ++k) {
        const int tile = min(at + k * 32, end - 1);
        unsigned state;
        all &= peek(words + (long long)tile * WORDS<Count>, number, found[k],
                    state);
      }
      if (PAUSE_NS && !all) __nanosleep(PAUSE_NS);
    } while (!all);
#pragma unroll
    for (int k = 0; k < LOOK; ++k)
      if (at + k * 32 < end) sum += found[k];
  }
  __syncwarp();
#pragma unroll
  for (int reach = 16; reach > 0; reach /= 2) sum += down(sum, reach);
  return from(sum, 0);
}
// --8<-- [end:between]

// As `compact`; the grid is of blocks that all run at the same time. Blocks of
// BLOCK + 32 threads. Dynamic shared memory: BUFFERS tiles, with their flags.
extern "C" __global__ void __launch_bounds__(BLOCK + 32, RESIDENT)
    compact_carried(const T* __restrict__ in,
                    const unsigned char* __restrict__ flags,
                    T* __restrict__ out, long long* __restrict__ count,
                    long long n, Word* __restrict__ state, int tiles) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ Barrier full[BUFFERS], known[BUFFERS];
  __shared__ int of_warp[2][WARPS], totals[BUFFERS];
  __shared__ Count prefixes[BUFFERS];
  const int thread = threadIdx.x, lane = thread % 32, blocks = gridDim.x;
  const Word counter = __ldcg(state);
  const unsigned number = number_of(counter);
  Word* words = state + HEADER;

  auto tile_of = [&](int i) { return blockIdx.x + (long long)i * blocks; };
  auto bring = [&](int stage, long long tile) {
    if ((tile + 1) * TILE > n) return;  // the last, if it is not full, or none
    unsigned char* to = memory + stage * STAGE_BYTES;
    arrive_and_expect(full + stage, STAGE_BYTES);
    load_bytes(to, in + tile * TILE, TILE * sizeof(T), full + stage);
    if (FLAGS)
      load_bytes(to + TILE * sizeof(T), flags + tile * TILE, TILE,
                 full + stage);
  };
  if (thread == 0) {
    for (int s = 0; s < BUFFERS; ++s) init(full + s, 1), init(known + s, 1);
    fence_init();
    for (int s = 0; s < BUFFERS; ++s) bring(s, tile_of(s));
  }
  __syncthreads();

  // --8<-- [start:carry]
  if (thread >= BLOCK) {  // one more warp, which does nothing else
    Count found = 0;
    Ring<BUFFERS> ring;
    for (long long tile = blockIdx.x; tile < tiles; tile += blocks) {
      found += between(words, (int)max(tile - blocks, 0LL), (int)tile, number);
      if (lane == 0) {
        prefixes[ring.stage] = found;
        arrive(known + ring.stage);
      }
      ring.advance();
    }
    return;
  }
  // --8<-- [end:carry]

  // --8<-- [start:loop]
  const int own = (tiles - (int)blockIdx.x + blocks - 1) / blocks;
  Ring<BUFFERS> now, past;
  int refill = 0;  // the stage whose tile was written a turn ago
  for (int i = 0; i < own + AHEAD; ++i) {
    const long long tile = tile_of(i);
    unsigned char* stage = memory + now.stage * STAGE_BYTES;
    Vector v[VECTORS];
    int before[VECTORS];
    unsigned bits = 0;
    if (i < own) {
      const unsigned char* stays = stage + TILE * sizeof(T);
      if ((tile + 1) * TILE <= n) {
        wait(full + now.stage, now.parity);
        const Vector* rows = reinterpret_cast<const Vector*>(stage) +
                             thread / 32 * (32 * VECTORS) + lane;
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) v[k] = rows[k * 32];
        bits = kept_bits(v, stays, TILE);
      } else {
        load_rows(in, tile, n, v);
        bits = kept_bits(v, flags + tile * TILE, size_of(tile, n));
      }
      const int rows = count_rows(bits, before);
      if (lane == 0) of_warp[i % 2][thread / 32] = rows;
    }
    sync_at<BLOCK>(1);  // all have read this tile, and written that of the past
    if (thread == 32 % BLOCK && i > AHEAD) {
      fence_for_tma();  // a copy follows what threads have written there
      bring(refill, tile_of(i - AHEAD - 1 + BUFFERS));
      if (++refill == BUFFERS) refill = 0;
    }
    if (i < own) {
      int total;
      const int in_tile = before_warp(of_warp[i % 2], total);
      if (thread == 0) {
        announce(words, (int)tile, number, (Count)total);
        totals[now.stage] = total;
      }
      stage_rows(v, bits, before, in_tile, total, reinterpret_cast<T*>(stage));
      now.advance();
    }
    if (i >= AHEAD) {
      const long long ready = tile_of(i - AHEAD);
      wait(known + past.stage, past.parity);
      const Count found = prefixes[past.stage];
      const int total = totals[past.stage];
      write_staged(
          reinterpret_cast<const T*>(memory + past.stage * STAGE_BYTES), ready,
          n, (long long)found, total, out);
      if (ready == tiles - 1 && thread == 0) {  // it has waited for all blocks
        count[0] = (long long)found + total;
        *state = ((counter >> 32) + 1) << 32;
      }
      past.advance();
    }
  }
  // --8<-- [end:loop]
}
