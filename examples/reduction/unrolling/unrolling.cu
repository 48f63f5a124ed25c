// What the chapter on unrolling compiles, times and breaks; the rung itself is
// unrolled.cu.
#ifndef BLOCK
#define BLOCK 256
#endif

// The tree alone. BOUND: BLOCK, a constant, or blockDim.x, which is known only
// when the kernel runs. KEEP_LOOP forbids the compiler to unroll.
#ifndef BOUND
#define BOUND BLOCK
#endif
// --8<-- [start:tree]
extern "C" __global__ void tree(int* data) {
  __shared__ int sums[BLOCK];
  const int t = threadIdx.x;
  sums[t] = data[t];
  __syncthreads();
#ifdef KEEP_LOOP
#pragma unroll 1
#endif
  for (int half = BOUND / 2; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  if (t == 0) data[0] = sums[0];
}
// --8<-- [end:tree]

#ifdef OF_WARP
#define WAIT __syncwarp()
#else
#define WAIT __syncthreads()
#endif

// cycles[0]: what one block needs for 16 * turns barriers, one after the other.
// --8<-- [start:barriers]
extern "C" __global__ void barriers(long long* cycles, int turns) {
  const long long start = clock64();
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int k = 0; k < 16; ++k) WAIT;
  }
  if (threadIdx.x == 0) cycles[0] = clock64() - start;
}
// --8<-- [end:barriers]

#ifdef NO_VOLATILE
#define SHARED_INT int
#else
#define SHARED_INT volatile int
#endif

// WRONG since Volta: nothing orders what one lane writes and another reads.
// --8<-- [start:volatile]
__device__ void warp_tree(SHARED_INT* sums, int t) {
  sums[t] += sums[t + 32];
  sums[t] += sums[t + 16];
  sums[t] += sums[t + 8];
  sums[t] += sums[t + 4];
  sums[t] += sums[t + 2];
  sums[t] += sums[t + 1];
}
// --8<-- [end:volatile]

// out[b] = sum of BLOCK elements, one block each.
extern "C" __global__ void reduce_volatile(const int* in, int* out) {
  __shared__ int sums[BLOCK];
  const int t = threadIdx.x;
  sums[t] = in[blockIdx.x * BLOCK + t];
  __syncthreads();
  for (int half = BLOCK / 2; half > 32; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  if (t < 32) warp_tree(sums, t);
  if (t == 0) out[blockIdx.x] = sums[0];
}
