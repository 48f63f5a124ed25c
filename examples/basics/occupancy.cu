// Occupancy: what it is counted from, what it is worth, and what else keeps an SM busy.
//
//   stay          warps that do nothing but stay, one of each block longer than the others;
//   stay_filled   the same, launched with so much shared memory that no more blocks fit
//   chains        CHAINS independent chains of FMAs per thread: work in flight = warps x CHAINS
//   read_words    LOADS independent loads of 4 bytes per thread
//   read_vectors  LOADS independent loads of 16 bytes per thread
#ifndef CHAINS
#define CHAINS 1
#endif
#ifndef REGISTERS
#define REGISTERS 1
#endif
#ifndef LOADS
#define LOADS 1
#endif

// --8<-- [start:stay]
// Warp 0 of each block stays `longer` times as long as the rest.
__device__ void stay_for(int* left, int cycles, int longer) {
  const long long wait = threadIdx.x < 32 ? (long long)longer * cycles : cycles;
  const long long begin = clock64();
  while (clock64() - begin < wait) {
  }
  if (threadIdx.x == 0) left[blockIdx.x] = 1;
}
// --8<-- [end:stay]

extern "C" __global__ void stay(int* __restrict__ left, int cycles, int longer) {
  stay_for(left, cycles, longer);
}

extern "C" __global__ void stay_filled(int* __restrict__ left, int cycles, int longer) {
  stay_for(left, cycles, longer);
}

// --8<-- [start:chains]
extern "C" __global__ void chains(const float* __restrict__ x, float* __restrict__ out,
                                  long long* __restrict__ begin, long long* __restrict__ end,
                                  int* __restrict__ sm, float a, float b, int steps) {
  float v[CHAINS];
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) v[c] = x[threadIdx.x] * (1.0f - 0.1f * c);
  __syncthreads();
  const long long first = clock64();
#pragma unroll 16
  for (int j = 0; j < steps; ++j) {
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) {
#if REGISTERS == 1
      v[c] = fmaf(v[c], v[c], -0.5f);  // needs the one before of its own chain, and no other value
#else
      v[c] = fmaf(a, v[c], b);  // the same, but it reads three different registers
#endif
    }
  }
  __syncthreads();
  const long long last = clock64();  // when all warps of the block are done
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) sum += v[c];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  if (threadIdx.x == 0) {
    begin[blockIdx.x] = first;
    end[blockIdx.x] = last;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm[blockIdx.x]));  // the clock is this SM's own
  }
}
// --8<-- [end:chains]

// --8<-- [start:read]
__device__ float total(float v) { return v; }
__device__ float total(float4 v) { return (v.x + v.y) + (v.z + v.w); }

template <typename T>
__device__ void read(const T* __restrict__ x, float* __restrict__ out, int n) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int stride = gridDim.x * blockDim.x;
  float sum = 0.0f;
  int i = t;
#pragma unroll 1
  for (; i + (LOADS - 1) * stride < n; i += LOADS * stride) {
    T v[LOADS];
#pragma unroll
    for (int l = 0; l < LOADS; ++l) v[l] = x[i + l * stride];  // all of them leave ...
#pragma unroll
    for (int l = 0; l < LOADS; ++l) sum += total(v[l]);  // ... before the first is waited for
  }
#pragma unroll 1
  for (; i < n; i += stride) sum += total(x[i]);
  out[t] = sum;
}
// --8<-- [end:read]

extern "C" __global__ void read_words(const float* __restrict__ x, float* __restrict__ out, int n) {
  read(x, out, n);
}

extern "C" __global__ void read_vectors(const float4* __restrict__ x, float* __restrict__ out,
                                        int n) {
  read(x, out, n);
}
