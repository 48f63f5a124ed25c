// Work that takes a known time, and work that comes late: what races between
// streams are shown and found with.

__device__ long long nanoseconds() {
  long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ void delay(long long ns) {
  const long long begin = nanoseconds();
  while (nanoseconds() - begin < ns) {
  }
}

// Takes its time and touches no memory. Each thread waits by itself.
extern "C" __global__ void spin(long long ns) { delay(ns); }

// --8<-- [start:late]
// Two kernels of one block each: they wait, then they touch memory.
extern "C" __global__ void store_late(int* __restrict__ x, int n, int value,
                                      long long ns) {
  delay(ns);
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = value;
}

extern "C" __global__ void copy_late(const int* __restrict__ x,
                                     int* __restrict__ y, int n, long long ns) {
  delay(ns);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i];
}
// --8<-- [end:late]

// --8<-- [start:cycles]
// As the kernel of the slides: it waits for so many cycles of its own SM.
extern "C" __global__ void spin_cycles(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}
// --8<-- [end:cycles]
