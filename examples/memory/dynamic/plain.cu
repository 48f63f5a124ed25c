// The same picture without launches from the GPU: every pixel, level by level,
// and with a queue of tiles.
#include "tiles.cuh"

// --8<-- [start:flat]
extern "C" __global__ void flat(unsigned short* out, float left, float top,
                                float step, int n, int most) {
  const Picture p{out, left, top, step, n, most};
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n) out[y * n + x] = dwell(p, x, y);
}
// --8<-- [end:flat]

// --8<-- [start:level]
// A block for each tile of a list; the parts of those that have to be divided
// become the next list. A tile is x + 65536 y.
extern "C" __global__ void level(unsigned short* out, float left, float top,
                                 float step, int n, int most,
                                 const unsigned int* tiles, int side, int split,
                                 int least, unsigned int* next, int* count) {
  const Picture p{out, left, top, step, n, most};
  const int x = tiles[blockIdx.x] & 65535, y = tiles[blockIdx.x] >> 16;
  int value;
  if (side <= least) return compute(p, x, y, side);
  if (uniform(p, x, y, side, &value)) return fill(p, x, y, side, value);
  if (threadIdx.x > 0) return;
  const int part = side / split, i = atomicAdd(count, split * split);
  for (int k = 0; k < split * split; ++k)
    next[i + k] = x + part * (k % split) + 65536 * (y + part * (k / split));
}
// --8<-- [end:level]

// --8<-- [start:queue]
enum State { TAKEN, FILLED, OPEN, GAVE_UP };

// The tile of the next ticket, or 0 where no tile is open any more. It may
// have to wait until another block has filled its place: for a second at most.
__device__ unsigned int take(const unsigned int* queue, int* state) {
  const int ticket = atomicAdd(state + TAKEN, 1);
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    if (unsigned int tile = *(const volatile unsigned int*)(queue + ticket))
      return tile;
    if (*(volatile int*)(state + OPEN) == 0) return 0;
    __nanosleep(200);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < 1'000'000'000ull);
  state[GAVE_UP] = 1;
  return 0;
}

// Blocks that stay and take tiles from a queue. A tile is 1 << 31, its level
// << 28, and its place in units of `least`; a place of the queue that nobody
// has filled yet is 0.
extern "C" __global__ void work_queue(unsigned short* out, float left,
                                      float top, float step, int n, int most,
                                      unsigned int* queue, int* state,
                                      int first, int split, int least) {
  const Picture p{out, left, top, step, n, most};
  __shared__ unsigned int shared_tile;
  while (true) {
    if (threadIdx.x == 0) shared_tile = take(queue, state);
    __syncthreads();
    const unsigned int tile = shared_tile;
    if (tile == 0) return;
    const int depth = tile >> 28 & 7, x = (tile & 16383) * least;
    const int y = (tile >> 14 & 16383) * least;
    int side = first, value;
    for (int k = 0; k < depth; ++k) side /= split;
    if (side <= least) {
      compute(p, x, y, side);
    } else if (uniform(p, x, y, side, &value)) {
      fill(p, x, y, side, value);
    } else if (threadIdx.x == 0) {
      const int part = side / split / least;
      atomicAdd(state + OPEN, split * split);
      const int place = atomicAdd(state + FILLED, split * split);
      for (int k = 0; k < split * split; ++k)
        atomicExch(queue + place + k, 1u << 31 | depth + 1 << 28 |
                                          y / least + part * (k / split) << 14 |
                                          x / least + part * (k % split));
    }
    __syncthreads();
    if (threadIdx.x == 0) atomicSub(state + OPEN, 1);
  }
}
// --8<-- [end:queue]
