// Occupancy: what it hides, and how much of it is there while a kernel runs.
//
//   chains        CHAINS independent chains of FMAs per thread
//   stay          warps that do nothing but stay; one warp of each block stays
//                 longer than the others
//   stay_filled   the same, launched with so much shared memory that no more
//                 blocks fit
#ifndef CHAINS
#define CHAINS 1
#endif
#ifndef REGISTERS
#define REGISTERS 1
#endif

// --8<-- [start:stay]
// Warp 0 of each block stays `longer` times as long as the rest. Each warp
// writes how many cycles it stayed.
__device__ void stay_for(int* stayed, int cycles, int longer) {
  long long wait = threadIdx.x < 32 ? (long long)longer * cycles : cycles;
  long long begin = clock64(), now = begin;
  while (now - begin < wait) now = clock64();
  int warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) stayed[warp] = now - begin;
}
// --8<-- [end:stay]

extern "C" __global__ void stay(int* __restrict__ stayed, int cycles,
                                int longer) {
  stay_for(stayed, cycles, longer);
}

extern "C" __global__ void stay_filled(int* __restrict__ stayed, int cycles,
                                       int longer) {
  stay_for(stayed, cycles, longer);
}

// --8<-- [start:chains]
extern "C" __global__ void chains(const float* __restrict__ x,
                                  float* __restrict__ out,
                                  long long* __restrict__ begin,
                                  long long* __restrict__ end,
                                  int* __restrict__ sm, float a, float b,
                                  int steps) {
  float v[CHAINS];
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) v[c] = x[threadIdx.x] * (1.0f - 0.1f * c);
  __syncthreads();
  long long first = clock64();
#pragma unroll 16
  for (int j = 0; j < steps; ++j) {
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) {
#if REGISTERS == 1
      v[c] = fmaf(v[c], v[c], -0.5f);  // waits for the step before of its chain
#else
      v[c] = fmaf(a, v[c], b);  // the same, but it reads three registers
#endif
    }
  }
  __syncthreads();
  long long last = clock64();  // when all warps of the block are done
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) sum += v[c];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  if (threadIdx.x == 0) {
    begin[blockIdx.x] = first;
    end[blockIdx.x] = last;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm[blockIdx.x]));  // whose clock
  }
}
// --8<-- [end:chains]
