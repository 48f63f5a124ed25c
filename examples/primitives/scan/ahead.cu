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
#ifndef LOOKERS
#define LOOKERS 1  // warps that look at sums, each at those of its own wave
#endif
#ifndef BULK_STORES
#define BULK_STORES 0  // 1: the copy engine writes the sums
#endif

static_assert(1 + LOOKERS + ADDERS <= WARPS, "one row of warps");
static_assert(BUFFERS > TEAMS, "a team's next tile comes before its last goes");
static_assert(BUFFERS >= LOOKERS && BUFFERS >= ADDERS,
              "nobody is a whole round of the ring ahead");

struct Shared {
  Barrier full[BUFFERS];   // a tile has come
  Barrier ready[BUFFERS];  // what precedes it is known
  Barrier empty[BUFFERS];  // it is scanned: its place is free
  Barrier passed[LOOKERS];
  T before_warp[BUFFERS][WARPS];  // in its tile
  T before_tile[BUFFERS];         // in the array
  T before_wave[LOOKERS];
  Word counter;
};

// --8<-- [start:turn]
// Which tiles a block has, and where in the ring. Parities tell only two phases
// apart. So whoever wants the tile of turn k waits first until its place is
// free: then the phase of the tile before in this place has ended.
struct Turn {
  int k;

  __device__ __forceinline__ long long tile() const {
    return blockIdx.x + (long long)k * gridDim.x;
  }
  __device__ __forceinline__ int stage() const { return k % BUFFERS; }
  __device__ __forceinline__ int parity() const { return k / BUFFERS % 2; }
  __device__ __forceinline__ bool is_full(long long n) const {
    return (tile() + 1) * TILE <= n;
  }
  __device__ __forceinline__ void wait_for_place(Shared& shared) const {
    wait(shared.empty + stage(), parity() ^ 1);
  }
  __device__ __forceinline__ void wait_for_tile(Shared& shared,
                                                long long n) const {
    wait_for_place(shared);
    if (is_full(n)) wait(shared.full + stage(), parity());
  }
};
// --8<-- [end:turn]

// A warp adds up a tile. before[w]: what precedes warp w's part of it.
// --8<-- [start:add]
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
// --8<-- [end:add]

// What precedes wave k, which the warp that looks at the wave before passes on.
__device__ __forceinline__ T passed_to(Shared& shared, int k) {
  const int own = k % LOOKERS;
  if (k == 0) return T(0);
  wait(shared.passed + own, (k / LOOKERS - (own == 0)) % 2);
  return shared.before_wave[own];
}

__device__ __forceinline__ void pass_on(Shared& shared, int k, T before) {
  const int next = (k + 1) % LOOKERS;
  shared.before_wave[next] = before;
  arrive(shared.passed + next);
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
      init(shared.ready + s, 32 + 1);  // the lanes that add, and who looks
      init(shared.empty + s, WARPS);
    }
    for (int l = 0; l < LOOKERS; ++l) init(shared.passed + l, 1);
    fence_init();
    shared.counter = __ldcg(state);
  }
  __syncthreads();
  const unsigned number = number_of(shared.counter);
  Word* words = state + HEADER;

  if (threadIdx.y < TEAMS) {
    int pending = -1;  // a stage that the copy engine still reads
    for (Turn t{(int)threadIdx.y}; t.tile() < tiles; t.k += TEAMS) {
      // --8<-- [start:scan]
      Vector* rows = stages + t.stage() * STAGE + warp * (32 * VECTORS) + lane;
      Vector v[VECTORS];
      T before[VECTORS];
      t.wait_for_tile(shared, n);
      if (t.is_full(n)) {
#pragma unroll
        for (int j = 0; j < VECTORS; ++j) v[j] = rows[j * 32];
      } else {
        load_rows(in, t.tile(), n, v);
      }
      scan_rows(v, before);
      wait(shared.ready + t.stage(), t.parity());
      finish_rows(
          v, before,
          shared.before_tile[t.stage()] + shared.before_warp[t.stage()][warp]);
      // --8<-- [end:scan]
      if (BULK_STORES && t.is_full(n)) {
#pragma unroll
        for (int j = 0; j < VECTORS; ++j) rows[j * 32] = v[j];
        fence_for_tma();
        __syncwarp();
        if (lane == 0) {
          store_bytes(out + first_of(t.tile()), rows, PER_WARP * sizeof(T));
          close_stores();
          if (pending >= 0) {
            wait_for_reads<1>();
            arrive(shared.empty + pending);
          }
        }
        pending = t.stage();
      } else {
        __syncwarp();
        if (lane == 0) arrive(shared.empty + t.stage());
        store_rows(out, t.tile(), n, v);
      }
    }
    if (BULK_STORES && lane == 0) wait_for_reads<0>();
  } else if (warp == 0) {
    for (Turn t{0}; lane == 0 && t.is_full(n); ++t.k) {
      // --8<-- [start:bring]
      t.wait_for_place(shared);
      arrive_and_expect(shared.full + t.stage(), TILE * sizeof(T));
      load_bytes(stages + t.stage() * STAGE, in + t.tile() * TILE,
                 TILE * sizeof(T), shared.full + t.stage());
      // --8<-- [end:bring]
    }
  } else if (warp <= LOOKERS) {
    for (Turn t{warp - 1}; t.tile() < tiles; t.k += LOOKERS) {
      // --8<-- [start:look]
      t.wait_for_tile(shared, n);  // before that, nobody has to be asked
      const int first = t.k * grid, count = min(grid, tiles - first);
      T left = T(0), all = T(0);
      for (int chunk = 0; chunk < count; chunk += 32 * LOOK) {
        T found[LOOK];
        unsigned missing = 0;
#pragma unroll
        for (int j = 0; j < LOOK; ++j) {
          found[j] = T(0);
          if (chunk + j * 32 + lane < count) missing |= 1u << j;
        }
        while (missing) {
#pragma unroll
          for (int j = 0; j < LOOK; ++j) {
            const long long at = first + chunk + j * 32LL + lane;
            unsigned of_word;
            T sum;
            if (missing >> j & 1 &&
                peek(words + at * WORDS<T>, number, sum, of_word))
              found[j] = sum, missing ^= 1u << j;
          }
          if (PAUSE_NS && missing) __nanosleep(PAUSE_NS);
        }
#pragma unroll
        for (int j = 0; j < LOOK; ++j) {
          all += found[j];
          if (chunk + j * 32 + lane < block) left += found[j];
        }
      }
#pragma unroll
      for (int reach = 1; reach < 32; reach *= 2) {
        all += down(all, reach);
        left += down(left, reach);
      }
      if (lane == 0) {
        const T before = passed_to(shared, t.k);
        pass_on(shared, t.k, before + all);
        shared.before_tile[t.stage()] = before + left;
        arrive(shared.ready + t.stage());
      }
      // --8<-- [end:look]
      // It has seen a word of each block: all know the number of this launch.
      if (lane == 0 && t.tile() == tiles - 1)
        *state = ((shared.counter >> 32) + 1) << 32;
    }
  } else if (warp <= LOOKERS + ADDERS) {
    for (Turn t{warp - 1 - LOOKERS}; t.tile() < tiles; t.k += ADDERS) {
      t.wait_for_tile(shared, n);
      const T sum = add_tile(in, t.tile(), n, stages + t.stage() * STAGE,
                             shared.before_warp[t.stage()]);
      if (lane == 0) announce(words, (int)t.tile(), number, sum);
      arrive(shared.ready + t.stage());
    }
  }
}
// --8<-- [end:kernel]
