// How long the steps take by which a block hands over its partial sum. One
// thread does each step `steps` times, and nothing else runs.

__device__ __forceinline__ long long now_ns() {
  long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

// words: two, the second of them 0. ns: the time for all stores with a fence,
// for all atomics, and for all fences alone.
extern "C" __global__ void handover(unsigned* __restrict__ words,
                                    long long* __restrict__ ns, int steps) {
  const long long begin = now_ns();
  for (int s = 0; s < steps; ++s) {
    __stcg(words, s);  // a plain store may be put off to the last turn: only
                       // that one is read
    __threadfence();
  }
  const long long stored = now_ns();
  unsigned at = 0;  // stays 0, but the compiler does not know: each atomic
                    // waits for the last
  for (int s = 0; s < steps; ++s) at = atomicInc(words + 1 + at, 0);
  const long long drawn = now_ns() + at;
  for (int s = 0; s < steps; ++s) __threadfence();
  ns[0] = stored - begin;
  ns[1] = drawn - stored;
  ns[2] = now_ns() - drawn;
}
