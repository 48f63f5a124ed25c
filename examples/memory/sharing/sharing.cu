// Work whose amount is known, waiting that only looks like work, and kernels
// that say where and when they ran.

__device__ long long nanoseconds() {
  long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// --8<-- [start:work]
// Counted work: each thread makes so many steps, v -> v * a + c. A kernel that
// does not run makes none.
extern "C" __global__ void count(unsigned* out, int n, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = i;
#pragma unroll 1
  for (int s = 0; s < steps; ++s) v = v * 1664525u + 1013904223u;
  out[i] = v;
}

// Waits for the clock, which goes on whether or not the kernel runs.
extern "C" __global__ void spin(long long ns) {
  const long long begin = nanoseconds();
  while (nanoseconds() - begin < ns) {
  }
}
// --8<-- [end:work]

// --8<-- [start:beat]
// One thread works and notes the time after every so many steps. Where the
// times have a gap, it did not run.
extern "C" __global__ void beat(long long* times, int n, int steps) {
  unsigned v = n;
  for (int i = 0; i < n; ++i) {
#pragma unroll 1
    for (int s = 0; s < steps; ++s) v = v * 1664525u + 1013904223u;
    times[i] = nanoseconds() + (v == 1);  // the work has to be done first
  }
}
// --8<-- [end:beat]

// --8<-- [start:present]
// How many kernels of one block are here at the same time, at most?
extern "C" __global__ void present(int* now, int* most, long long ns) {
  const int here = atomicAdd(now, 1) + 1;
  atomicMax(most, here);
  const long long begin = nanoseconds();
  while (nanoseconds() - begin < ns) {
  }
  atomicSub(now, 1);
}
// --8<-- [end:present]

// --8<-- [start:where]
// The SM that each block ran on. Blocks stay for a while, so that they spread.
extern "C" __global__ void where(int* sms, long long ns) {
  int sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  const long long begin = nanoseconds();
  while (nanoseconds() - begin < ns) {
  }
  if (threadIdx.x == 0) sms[blockIdx.x] = sm;
}
// --8<-- [end:where]

// Writes where nothing is: what it does to its neighbors is the question.
extern "C" __global__ void stray(unsigned long long nowhere) {
  *reinterpret_cast<int*>(nowhere) = 1;
}
