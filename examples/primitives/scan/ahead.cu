// One launch of as many blocks as run at the same time, whose warps have
// different tasks. A tile's sum is told as soon as the tile has come, and the
// tile is scanned some tiles later, when all sums before it are long known.
// requires: sm_90
#include "primitives/scan/look_back.cuh"
#include "ptx/bulk.cuh"
#include "ptx/tma.cuh"

#ifndef RESIDENT
#define RESIDENT 1  // blocks that an SM holds at least
#endif
#ifndef BUFFERS
#define BUFFERS 4  // tiles of a block in shared memory or on their way
#endif
#ifndef TEAMS
#define TEAMS 1  // of BLOCK threads, each of which scans a tile of its own
#endif
#ifndef ADDERS
#define ADDERS 2  // warps that add up tiles, each a tile of its own
#endif
#ifndef BULK_STORES
#define BULK_STORES 0  // 1: the copy engine writes the sums
#endif

static_assert(ADDERS + 2 <= WARPS, "one row of warps");
static_assert(BUFFERS > TEAMS, "a team's next tile comes before its last goes");

struct Shared {
  Barrier full[BUFFERS], ready[BUFFERS], empty[BUFFERS];
  T before_warp[BUFFERS][WARPS];  // in its tile
  T before_tile[BUFFERS];
  Word counter;
};

// A warp adds up a tile of sums by warp: what precedes each warp in the tile.
__device__ __forceinline__ T add_tile(const T* __restrict__ in, long long tile,
                                      long long n, const Vector* stage,
                                      T* before) {
  const int lane = threadIdx.x % 32;
  const bool full = (tile + 1) * TILE <= n;
  T sums[WARPS];
#pragma unroll
  for (int w = 0; w < WARPS; ++w) {
    Vector v[VECTORS];
    if (full) {
#pragma unroll
      for (int k = 0; k < VECTORS; ++k)
        v[k] = stage[(w * VECTORS + k) * 32 + lane];
    } else {
      load_rows(in, tile, n, v, w);
    }
    T rows[VECTORS];
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
      rows[k] = v[k].at[0];
#pragma unroll
      for (int i = 1; i < PER_VECTOR; ++i) rows[k] += v[k].at[i];
    }
    sums[w] = rows[0];
#pragma unroll
    for (int k = 1; k < VECTORS; ++k) sums[w] += rows[k];
  }
#pragma unroll
  for (int reach = 1; reach < 32; reach *= 2)
#pragma unroll
    for (int w = 0; w < WARPS; ++w) sums[w] = down(sums[w], reach) + sums[w];
  T sum = T(0);
#pragma unroll
  for (int w = 0; w < WARPS; ++w) {
    if (lane == 0) before[w] = sum;
    sum += sums[w];
  }
  return sum;  // right in lane 0
}

// out: sums of in[0 .. n), which is aligned to 16 bytes. Block: (BLOCK, TEAMS +
// 1). Dynamic shared memory: BUFFERS tiles. state: as for scan_look_back. Block
// b has the tiles b, b + gridDim.x, ...: one of each wave.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(BLOCK*(TEAMS + 1), RESIDENT)
    scan_ahead(const T* __restrict__ in, T* __restrict__ out, long long n,
               Word* __restrict__ state, int tiles) {
  extern __shared__ __align__(128) unsigned char memory[];
  Vector* stages = reinterpret_cast<Vector*>(memory);
  constexpr int STAGE = TILE / PER_VECTOR;
  __shared__ Shared shared;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int grid = gridDim.x, block = blockIdx.x;
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    for (int s = 0; s < BUFFERS; ++s) {
      init(shared.full + s, 1);
      init(shared.ready + s, 2);
      init(shared.empty + s, WARPS);
    }
    fence_init();
    shared.counter = __ldcg(state);
  }
  __syncthreads();
  const unsigned number = number_of(shared.counter);
  Word* words = state + HEADER;

  if (threadIdx.y < TEAMS) {  // scans
    int pending = -1;         // a stage that the copy engine still reads
    for (int k = threadIdx.y; block + (long long)k * grid < tiles; k += TEAMS) {
      const long long tile = block + (long long)k * grid;
      const int stage = k % BUFFERS, parity = k / BUFFERS % 2;
      const bool full = (tile + 1) * TILE <= n;
      Vector* rows = stages + stage * STAGE + warp * (32 * VECTORS) + lane;
      Vector v[VECTORS];
      T before[VECTORS];
      if (full) {
        wait(shared.full + stage, parity);
#pragma unroll
        for (int j = 0; j < VECTORS; ++j) v[j] = rows[j * 32];
      } else {
        load_rows(in, tile, n, v);
      }
      scan_rows(v, before);
      wait(shared.ready + stage, parity);
      const T prefix =
          shared.before_tile[stage] + shared.before_warp[stage][warp];
      finish_rows(v, before, prefix);
      if (BULK_STORES && full) {
#pragma unroll
        for (int j = 0; j < VECTORS; ++j) rows[j * 32] = v[j];
        fence_for_tma();
        __syncwarp();
        if (lane == 0) {
          store_bytes(out + first_of(tile), rows, PER_WARP * sizeof(T));
          close_stores();
          if (pending >= 0) {
            wait_for_reads<1>();
            arrive(shared.empty + pending);
          }
        }
        pending = stage;
      } else {
        __syncwarp();
        if (lane == 0) arrive(shared.empty + stage);
        store_rows(out, tile, n, v);
      }
    }
    if (BULK_STORES && lane == 0) wait_for_reads<0>();
  } else if (warp == 0) {  // brings
    if (lane == 0) {
      for (int k = 0;; ++k) {
        const long long tile = block + (long long)k * grid;
        if ((tile + 1) * TILE > n) break;
        const int stage = k % BUFFERS;
        wait(shared.empty + stage, k / BUFFERS % 2 ^ 1);
        arrive_and_expect(shared.full + stage, TILE * sizeof(T));
        load_bytes(stages + stage * STAGE, in + tile * TILE, TILE * sizeof(T),
                   shared.full + stage);
      }
    }
  } else if (warp == 1) {  // looks at the sums of all tiles
    T before_wave = T(0);
    for (int k = 0; block + (long long)k * grid < tiles; ++k) {
      const int first = k * grid, count = min(grid, tiles - first);
      T left = T(0), all = T(0);
      for (int from_word = 0; from_word < count; from_word += 32 * LOOK) {
        T found[LOOK];
        unsigned missing = 0;
#pragma unroll
        for (int j = 0; j < LOOK; ++j) {
          found[j] = T(0);
          if (from_word + j * 32 + lane < count) missing |= 1u << j;
        }
        while (missing) {
#pragma unroll
          for (int j = 0; j < LOOK; ++j) {
            unsigned of_word;
            T sum;
            if (missing >> j & 1 &&
                peek(words + (first + from_word + j * 32LL + lane) * WORDS<T>,
                     number, sum, of_word))
              found[j] = sum, missing ^= 1u << j;
          }
          if (PAUSE_NS && missing) __nanosleep(PAUSE_NS);
        }
#pragma unroll
        for (int j = 0; j < LOOK; ++j) {
          all += found[j];
          if (from_word + j * 32 + lane < block) left += found[j];
        }
      }
#pragma unroll
      for (int reach = 1; reach < 32; reach *= 2) {
        all = all + down(all, reach);
        left = left + down(left, reach);
      }
      if (lane == 0) {
        shared.before_tile[k % BUFFERS] = before_wave + left;
        arrive(shared.ready + k % BUFFERS);
      }
      before_wave += from(all, 0);
      // It has seen a word of each block: all know the number of this launch.
      if (lane == 0 && first + block == tiles - 1)
        *state = ((shared.counter >> 32) + 1) << 32;
    }
  } else if (warp - 2 < ADDERS) {  // adds up
    for (int k = warp - 2; block + (long long)k * grid < tiles; k += ADDERS) {
      const long long tile = block + (long long)k * grid;
      const int stage = k % BUFFERS;
      if ((tile + 1) * TILE <= n)
        wait(shared.full + stage, k / BUFFERS % 2);
      else  // nobody brings it, but its place has to be free all the same
        wait(shared.empty + stage, k / BUFFERS % 2 ^ 1);
      const T sum = add_tile(in, tile, n, stages + stage * STAGE,
                             shared.before_warp[stage]);
      if (lane == 0) {
        announce(words, (int)tile, number, sum);
        arrive(shared.ready + stage);
      }
    }
  }
}
// --8<-- [end:kernel]
