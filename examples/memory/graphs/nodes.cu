// What a node of a graph costs, and what makes it shorter.
//
//   busy     keeps its SM for so many nanoseconds, and tells its clock
//   write    a step that reads nothing
//   nothing  no step at all
//   early    a step that begins while the one before still runs
//   noted    a step that writes down when it began and ended
#include "ptx/overlap.cuh"

__device__ __forceinline__ long long nanoseconds() {
  long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// --8<-- [start:busy]
// spent[2 * block]: its cycles, spent[2 * block + 1]: its nanoseconds.
extern "C" __global__ void busy(long long* spent, long long ns) {
  const long long begin = nanoseconds(), cycles = clock64();
  while (nanoseconds() - begin < ns) {
  }
  if (threadIdx.x == 0) {
    spent[2 * blockIdx.x] = clock64() - cycles;
    spent[2 * blockIdx.x + 1] = nanoseconds() - begin;
  }
}
// --8<-- [end:busy]

// --8<-- [start:attempts]
extern "C" __global__ void write(unsigned int* x, unsigned int k, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 1664525u * i + k;
}

extern "C" __global__ void nothing() {}

// For programmatic arrows. x is written by the kernel before: it is read only
// after the wait.
extern "C" __global__ void early(unsigned int* x, unsigned int k, int n) {
  begin_next();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  wait_for_previous();
  if (i < n) x[i] = 1664525u * x[i] + k;
}
// --8<-- [end:attempts]

// --8<-- [start:noted]
// notes: for each k and each block when it began and when its threads were
// done, in nanoseconds.
extern "C" __global__ void noted(unsigned int* x, unsigned int k, int n,
                                 long long* notes) {
  const long long begin = nanoseconds();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 1664525u * x[i] + k;
  __syncthreads();
  if (threadIdx.x == 0) {
    long long* mine = notes + 2 * (k * gridDim.x + blockIdx.x);
    mine[0] = begin;
    mine[1] = nanoseconds();
  }
}
// --8<-- [end:noted]
