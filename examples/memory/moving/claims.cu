// The lanes of a warp read constant memory, or shared memory: all of them the
// same word, or each a word of its own.

// --8<-- [start:walk]
constexpr int WORDS = 1024;
__constant__ unsigned ring[WORDS];  // each word holds the number of another

// One warp. Lane l begins at word l * apart, and each load says where the next
// one is. ring[i] is (i + 32) % WORDS: lanes that begin at one word stay at
// one.
template <bool SHARED>
__device__ void walk(int apart, int count, long long* cycles, unsigned* ends) {
  __shared__ unsigned copy[WORDS];
  for (int i = threadIdx.x; i < WORDS; i += 32) copy[i] = ring[i];
  __syncwarp();
  unsigned at = threadIdx.x * apart;
  for (int i = 0; i < WORDS / 32; ++i) at = SHARED ? copy[at] : ring[at];
  const long long begin = clock64();
  for (int i = 0; i < count; ++i) at = SHARED ? copy[at] : ring[at];
  ends[threadIdx.x] = at;
  if (threadIdx.x == 0) *cycles = clock64() - begin;
}

extern "C" __global__ void walk_constant(int apart, int count,
                                         long long* cycles, unsigned* ends) {
  walk<false>(apart, count, cycles, ends);
}

extern "C" __global__ void walk_shared(int apart, int count, long long* cycles,
                                       unsigned* ends) {
  walk<true>(apart, count, cycles, ends);
}
// --8<-- [end:walk]
