// The programming model, measured: where blocks run, what a branch costs, what
// latency is, and what hides it.
//
//   where_am_i       each block writes its SM, its start and its end
//   branch           two sides of equal work; `shift` sets how many neighbors
//                    take the same side
//   branch_by_lane   the same with neighbors on different sides
//   branch_by_warp   the same with each warp on one side
//   fma_chain        one block of FMAs that wait for each other
//   chase            one thread; each load needs the result of the one before
//   chase_shared     the same in shared memory
//   read_one         one load in flight per thread
//   read_four        four loads in flight per thread
//   fma_k            k FMAs per element, for the roofline
//   add              the vector add of the worked example
//
// The number of a thread stays unsigned, as CUDA gives it: in an int it could
// pass 2^31 - 1 in the last block although n does not. Loops that step on with
// a stride count in 64 bits.

// --8<-- [start:where]
__device__ int sm_id() {
  int sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
}

__device__ long long now_ns() {
  long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

extern "C" __global__ void where_am_i(int* __restrict__ sm,
                                      long long* __restrict__ start,
                                      long long* __restrict__ stop,
                                      int spin_ns) {
  const long long begin = now_ns();
  long long end = begin;
  // Stay a while, so that blocks must wait.
  while (end - begin < spin_ns) end = now_ns();
  if (threadIdx.x == 0) {
    sm[blockIdx.x] = sm_id();
    start[blockIdx.x] = begin;
    stop[blockIdx.x] = end;
  }
}
// --8<-- [end:where]

// --8<-- [start:branch]
__device__ float two_sides(float v, bool odd, int steps) {
  if (odd) {
    for (int j = 0; j < steps; ++j) v = fmaf(-0.999f, v, 0.001f);
  } else {
    for (int j = 0; j < steps; ++j) v = fmaf(0.999f, v, 0.001f);
  }
  return v;
}

extern "C" __global__ void branch(const float* __restrict__ x,
                                  float* __restrict__ out, int n, int steps,
                                  int shift) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const bool odd = (threadIdx.x >> shift) & 1;  // 2^shift neighbors agree
  out[i] = two_sides(x[i], odd, steps);
}
// --8<-- [end:branch]

extern "C" __global__ void branch_by_lane(const float* __restrict__ x,
                                          float* __restrict__ out, int n,
                                          int steps) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = two_sides(x[i], threadIdx.x & 1, steps);
}

extern "C" __global__ void branch_by_warp(const float* __restrict__ x,
                                          float* __restrict__ out, int n,
                                          int steps) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = two_sides(x[i], (threadIdx.x / 32) & 1, steps);
}

// --8<-- [start:chain]
extern "C" __global__ void fma_chain(const float* __restrict__ x,
                                     float* __restrict__ out,
                                     long long* __restrict__ start,
                                     long long* __restrict__ stop, int steps) {
  float v = x[threadIdx.x];
  __syncthreads();
  const long long begin = clock64();
  // Each FMA needs the one before.
#pragma unroll 64
  for (int j = 0; j < steps; ++j) v = fmaf(0.999f, v, 0.001f);
  const long long end = clock64();
  out[threadIdx.x] = v;
  if (threadIdx.x % 32 == 0) {
    start[threadIdx.x / 32] = begin;
    stop[threadIdx.x / 32] = end;
  }
}
// --8<-- [end:chain]

// --8<-- [start:chase]
extern "C" __global__ void chase(const int* __restrict__ next,
                                 int* __restrict__ last,
                                 long long* __restrict__ ticks, int warm,
                                 int steps) {
  int at = 0;
  // Brings the lines into the cache under test.
  for (int j = 0; j < warm; ++j) at = next[at];
  const long long cycles = clock64();
  const long long ns = now_ns();
  // Each address is the result of the load before.
  for (int j = 0; j < steps; ++j) at = next[at];
  ticks[0] = clock64() - cycles;
  ticks[1] = now_ns() - ns;
  *last = at;
}
// --8<-- [end:chase]

extern "C" __global__ void chase_shared(const int* __restrict__ next,
                                        int* __restrict__ last,
                                        long long* __restrict__ ticks,
                                        int words, int steps) {
  __shared__ int copy[4096];
  for (int i = threadIdx.x; i < words; i += blockDim.x) copy[i] = next[i];
  __syncthreads();
  if (threadIdx.x != 0) return;
  int at = 0;
  const long long cycles = clock64();
  const long long ns = now_ns();
  for (int j = 0; j < steps; ++j) at = copy[at];
  ticks[0] = clock64() - cycles;
  ticks[1] = now_ns() - ns;
  *last = at;
}

// --8<-- [start:read]
extern "C" __global__ void read_one(const float* __restrict__ x,
                                    float* __restrict__ out, int n) {
  const size_t t = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  const size_t stride = (size_t)gridDim.x * blockDim.x;
  float sum = 0.0f;
  // The add waits: one load in flight.
#pragma unroll 1
  for (size_t i = t; i < n; i += stride) sum += x[i];
  out[t] = sum;
}

extern "C" __global__ void read_four(const float* __restrict__ x,
                                     float* __restrict__ out, int n) {
  const size_t t = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  const size_t stride = (size_t)gridDim.x * blockDim.x;
  float sum = 0.0f;
  size_t i = t;
#pragma unroll 1
  for (; i + 3 * stride < n; i += 4 * stride) {
    // Four loads are under way before the first add waits.
    const float a = x[i], b = x[i + stride];
    const float c = x[i + 2 * stride], d = x[i + 3 * stride];
    sum += (a + b) + (c + d);
  }
  for (; i < n; i += stride) sum += x[i];
  out[t] = sum;
}
// --8<-- [end:read]

// --8<-- [start:roofline]
extern "C" __global__ void fma_k(const float* __restrict__ x,
                                 float* __restrict__ out, int n, int k) {
  const unsigned first = blockIdx.x * blockDim.x * 4 + threadIdx.x;
  float v[4];
  // Four loads are under way before the first FMA waits.
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const unsigned i = first + c * blockDim.x;
    v[c] = i < n ? x[i] : 0.0f;
  }
  int j = 0;
  for (; j + 16 <= k; j += 16) {
    // 64 FMAs per trip: few instructions for the loop itself.
#pragma unroll
    for (int u = 0; u < 16; ++u) {
#pragma unroll
      for (int c = 0; c < 4; ++c) v[c] = fmaf(0.999f, v[c], 0.001f);
    }
  }
#pragma unroll 1
  for (; j < k; ++j) {
#pragma unroll
    for (int c = 0; c < 4; ++c) v[c] = fmaf(0.999f, v[c], 0.001f);
  }
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const unsigned i = first + c * blockDim.x;
    if (i < n) out[i] = v[c];
  }
}
// --8<-- [end:roofline]

// --8<-- [start:add]
extern "C" __global__ void add(const float* __restrict__ x,
                               const float* __restrict__ y,
                               float* __restrict__ out, int n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
// --8<-- [end:add]
