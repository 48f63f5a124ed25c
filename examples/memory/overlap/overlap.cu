// The kernels of the chapter on overlap: one whose time is chosen by its number
// of steps, and two that the exercises need to delay and to overwrite.

// Each element is the state of a random number generator, v -> v * a + c. The
// kernel moves it forward by `steps` steps: 4 bytes in, 4 bytes out, and as
// much arithmetic in between as one likes.
// --8<-- [start:forward]
extern "C" __global__ void forward(unsigned* x, int n, int steps, unsigned a,
                                   unsigned c) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = x[i];
  for (int s = 0; s < steps; ++s) v = v * a + c;
  x[i] = v;
}
// --8<-- [end:forward]

// Writes one value to all pieces of one block of a KV cache: piece p of block b
// begins at word (p * blocks + b) * words.
extern "C" __global__ void fill(unsigned* cache, int block, int blocks,
                                int words, unsigned value) {
  const long long piece = (long long)blockIdx.y * blocks + block;
  for (int i = threadIdx.x; i < words; i += blockDim.x)
    cache[piece * words + i] = value;
}

// Keeps its stream busy for so many nanoseconds, a second at most.
extern "C" __global__ void hold(long long ns) {
  long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  ns = min(ns, 1000000000LL);
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < ns);
}
