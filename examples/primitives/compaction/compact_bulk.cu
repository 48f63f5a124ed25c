// Compaction and partition by as many blocks as run at the same time: the copy
// engine brings the next tiles while a block waits for what precedes its own.
// requires: sm_90
#include "primitives/compaction/compact.cuh"
#include "ptx/bulk.cuh"

#ifndef RESIDENT
#define RESIDENT 1  // blocks that an SM holds at least
#endif
#ifndef BUFFERS
#define BUFFERS 2  // tiles of a block in shared memory or on their way
#endif

// As `compact`. Dynamic shared memory: BUFFERS + 1 tiles.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    compact_bulk(const T* __restrict__ in,
                 const unsigned char* __restrict__ flags, T* __restrict__ out,
                 long long* __restrict__ count, long long n,
                 Word* __restrict__ state, int tiles) {
  extern __shared__ __align__(128) unsigned char memory[];
  Vector* stages = reinterpret_cast<Vector*>(memory);
  T* staged = reinterpret_cast<T*>(memory) + BUFFERS * TILE;
  __shared__ Barrier full[BUFFERS];
  __shared__ int of_warp[WARPS];
  __shared__ Count prefix;
  const int thread = threadIdx.x, lane = thread % 32, blocks = gridDim.x;
  constexpr int BRINGS = 32 % BLOCK;  // not of the warp that looks back
  const Word counter = __ldcg(state);
  const unsigned number = number_of(counter);
  Word* words = state + HEADER;

  auto bring = [&](int stage, long long tile) {
    if ((tile + 1) * TILE > n) return;  // the last, if it is not full, or none
    arrive_and_expect(full + stage, TILE * sizeof(T));
    load_bytes(stages + stage * (TILE / PER_VECTOR), in + tile * TILE,
               TILE * sizeof(T), full + stage);
  };
  if (thread == BRINGS) {
    for (int s = 0; s < BUFFERS; ++s) init(full + s, 1);
    fence_init();
    for (int s = 0; s < BUFFERS; ++s)
      bring(s, blockIdx.x + (long long)s * blocks);
  }
  __syncthreads();

  Ring<BUFFERS> ring;
  for (long long tile = blockIdx.x; tile < tiles; tile += blocks) {
    Vector v[VECTORS];
    int before[VECTORS], total;
    if ((tile + 1) * TILE <= n) {
      wait(full + ring.stage, ring.parity);
      const Vector* rows = stages + ring.stage * (TILE / PER_VECTOR) +
                           thread / 32 * (32 * VECTORS) + lane;
#pragma unroll
      for (int k = 0; k < VECTORS; ++k) v[k] = rows[k * 32];
    } else {
      load_rows(in, tile, n, v);
    }
    const unsigned bits = kept_bits(v, flags + tile * TILE, size_of(tile, n));
    const int rows = count_rows(bits, before);
    if (lane == 0) of_warp[thread / 32] = rows;
    __syncthreads();  // besides, all have read the stage
    const int in_tile = before_warp(of_warp, total);
    if (thread == 0) announce(words, (int)tile, number, (Count)total);
    if (thread == BRINGS) bring(ring.stage, tile + (long long)BUFFERS * blocks);
    stage_rows(v, bits, before, in_tile, total, staged);
    if (thread < 32) {
      const Count found = look_back(words, (int)tile, number, (Count)total);
      if (lane == 0) prefix = found;
    }
    __syncthreads();
    const long long found = prefix;
    write_staged(staged, tile, n, found, total, out);
    if (tile == tiles - 1 && thread == 0) {  // it has waited for all blocks
      count[0] = found + total;
      *state = ((counter >> 32) + 1) << 32;
    }
    ring.advance();
  }
}
// --8<-- [end:kernel]
