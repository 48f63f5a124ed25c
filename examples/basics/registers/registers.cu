// expect: spills
// Registers: a kernel that wants many, and an array of a thread whose index is
// known only at run time.
//
//   ring            RING values per thread, all needed in every round
//   count_indexed   counters in a local array, c[x]++: local memory
//   count_unrolled  the same counters, every index a constant: registers
#ifndef RING
#define RING 64
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1
#endif
#define BINS 16

// --8<-- [start:ring]
// Each thread holds a ring of values. In every round each value moves towards
// its neighbor.
extern "C" __global__ void __launch_bounds__(256, MIN_BLOCKS)
    ring(const float* __restrict__ x, float* __restrict__ out, int n,
         float part, int rounds) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  float v[RING];
#pragma unroll
  for (int i = 0; i < RING; ++i) v[i] = x[(size_t)i * n + t];
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int i = 0; i < RING; ++i)
      v[i] = fmaf(part, v[(i + 1) % RING] - v[i], v[i]);
  }
#pragma unroll
  for (int i = 0; i < RING; ++i) out[(size_t)i * n + t] = v[i];
}
// --8<-- [end:ring]

// --8<-- [start:indexed]
extern "C" __global__ void count_indexed(const int* __restrict__ x,
                                         int* __restrict__ out, int n,
                                         int each) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  int c[BINS] = {};
#pragma unroll 1
  for (int j = 0; j < each; ++j)
    c[x[(size_t)j * n + t]]++;  // the index comes from the data
#pragma unroll
  for (int k = 0; k < BINS; ++k) out[(size_t)k * n + t] = c[k];
}
// --8<-- [end:indexed]

// --8<-- [start:unrolled]
extern "C" __global__ void count_unrolled(const int* __restrict__ x,
                                          int* __restrict__ out, int n,
                                          int each) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  int c[BINS] = {};
#pragma unroll 1
  for (int j = 0; j < each; ++j) {
    int bin = x[(size_t)j * n + t];
#pragma unroll
    for (int k = 0; k < BINS; ++k) c[k] += bin == k;  // every k is a constant
  }
#pragma unroll
  for (int k = 0; k < BINS; ++k) out[(size_t)k * n + t] = c[k];
}
// --8<-- [end:unrolled]
