// What the exercises are given: kernels that are to be launched by others.
#pragma once

__device__ void wait(unsigned int ns) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < ns);
}

// parts[k] = k * k, 50 microseconds after its begin.
__global__ void part(int* parts, int k) {
  wait(50'000);
  parts[k] = k * k;
}

// Adds them up; total begins at 0.
__global__ void add(const int* parts, int count, int* total) {
  for (int k = 0; k < count; ++k) *total += parts[k];
}

// One block adds up x[from] to x[to - 1]; sum begins at 0.
__global__ void long_row(const unsigned int* x, int from, int to,
                         unsigned int* sum) {
  unsigned int own = 0;
  for (int k = from + threadIdx.x; k < to; k += blockDim.x) own += x[k];
  atomicAdd(sum, own);
}
