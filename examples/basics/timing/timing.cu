// Reliable timing: what is timed, what empties the cache, what keeps the GPU
// busy for a known time, and which clock the SMs run at.

// --8<-- [start:copy]
// Each thread copies four elements: the launch needs at least n / 4 threads.
extern "C" __global__ void copy(const float* __restrict__ in,
                                float* __restrict__ out, int n) {
  const size_t threads = (size_t)gridDim.x * blockDim.x;
  const size_t t = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < 4; ++k) {
    const size_t i = t + k * threads;
    if (i < n) out[i] = in[i];
  }
}
// --8<-- [end:copy]

__device__ long long nanoseconds() {
  long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// --8<-- [start:busy]
extern "C" __global__ void busy(long long ns) {
  const long long start = nanoseconds();
  while (nanoseconds() - start < ns) {
  }
}
// --8<-- [end:busy]

// --8<-- [start:sm-clock]
extern "C" __global__ void sm_clock(long long* __restrict__ out, long long ns) {
  const long long start = nanoseconds(), cycles = clock64();
  while (nanoseconds() - start < ns) {
  }
  out[0] = clock64() - cycles;
  out[1] = nanoseconds() - start;
}
// --8<-- [end:sm-clock]

// --8<-- [start:chain]
extern "C" __global__ void chain(float* __restrict__ out, float a, float b,
                                 int steps) {
  float value = threadIdx.x;
  for (int i = 0; i < steps; ++i)
    value = fmaf(value, a, b);  // each waits for the one before
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
// --8<-- [end:chain]
