// Occupancy: what it is counted from, what it is worth, and what else keeps an SM busy.
//
//   stay          warps that do nothing but stay, one of each block longer than the others
//   chains        CHAINS independent chains of FMAs per thread: work in flight = warps x CHAINS
//   read_words    LOADS independent loads of 4 bytes per thread
//   read_vectors  LOADS independent loads of 16 bytes per thread
#ifndef CHAINS
#define CHAINS 1
#endif
#ifndef LOADS
#define LOADS 1
#endif

// --8<-- [start:stay]
// Warp 0 of each block stays `longer` times as long as the rest. A block keeps its registers, its
// shared memory and its place until its last warp ends.
extern "C" __global__ void stay(int* __restrict__ left, int cycles, int longer) {
  const long long wait = threadIdx.x < 32 ? (long long)longer * cycles : cycles;
  const long long begin = clock64();
  while (clock64() - begin < wait) {
  }
  if (threadIdx.x == 0) left[blockIdx.x] = 1;
}
// --8<-- [end:stay]

// --8<-- [start:chains]
extern "C" __global__ void chains(const float* __restrict__ x, float* __restrict__ out,
                                  long long* __restrict__ ticks, float a, float b, int steps) {
  float v[CHAINS];
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) v[c] = x[threadIdx.x] + c;
  __syncthreads();
  const long long begin = clock64();
#pragma unroll 16
  for (int j = 0; j < steps; ++j) {
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) v[c] = fmaf(a, v[c], b);  // each needs only its own last one
  }
  __syncthreads();  // so that the time is that of the whole block
  const long long end = clock64();
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) sum += v[c];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  if (threadIdx.x == 0) ticks[blockIdx.x] = end - begin;
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
