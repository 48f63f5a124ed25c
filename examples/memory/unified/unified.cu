// Unified memory: a kernel that works in place, one that times each page that
// it touches, and one that waits until the host has written to its memory.

// --8<-- [start:negate]
extern "C" __global__ void negate(float* x, int n) {
  const size_t stride = (size_t)gridDim.x * blockDim.x;
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < n; i += stride) x[i] = -x[i];
}
// --8<-- [end:negate]

// --8<-- [start:touch]
// One thread reads the first word of each of these pages, one after the other.
extern "C" __global__ void touch(const int* data, const int* pages,
                                 long long* cycles, int* found, int touches) {
  __shared__ volatile int seen;  // to store a word, it has to be there
  for (int i = 0; i < touches; ++i) {
    seen = pages[i];
    const volatile int* word = data + (size_t)seen * 1024;
    const long long begin = clock64();
    seen = *word;
    cycles[i] = clock64() - begin;
    found[i] = seen;
  }
}
// --8<-- [end:touch]

// --8<-- [start:wait]
__device__ long long nanoseconds() {
  long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Three words, each in 2 MB of its own: here I am; the host's; what I saw.
extern "C" __global__ void wait_for_host(volatile int* words, long long most) {
  const int apart = 1 << 19;
  const long long begin = nanoseconds();
  words[0] = 1;
  int seen = 0;
  while (seen == 0 && nanoseconds() - begin < most) seen = words[apart];
  words[2 * apart] = seen;
}
// --8<-- [end:wait]
