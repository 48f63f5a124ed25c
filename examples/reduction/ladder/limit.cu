// Rung 9: 16 bytes per load, several loads in flight, one tile per block in the
// order of memory.
// @rung 90 kernel=reduce_limit block=1024 blocks=64,128,256,512,1024 vectors=4 grid=tiles launches=one
#ifndef ELEMENT
#define ELEMENT float  // or int
#endif
#ifndef BLOCK
#define BLOCK 1024
#endif
#ifndef VECTORS
#define VECTORS 4  // loads of 16 bytes that each thread has in flight
#endif
using T = ELEMENT;

// 16 bytes: what one load instruction brings at most.
struct alignas(16) Vector {
  T at[16 / sizeof(T)];
};
constexpr int PER_VECTOR = 16 / sizeof(T);

__device__ __forceinline__ T warp_sum(T sum) {
#pragma unroll
  for (int half = 16; half > 0; half /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, half);
  return sum;
}

// Sum over the block; only thread 0 holds it. Ends with every thread past its
// use of shared memory.
__device__ __forceinline__ T block_sum(T sum) {
  __shared__ T of_warp[BLOCK / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  sum = warp_sum(sum);
  if (lane == 0) of_warp[warp] = sum;
  __syncthreads();
  if (warp == 0) sum = warp_sum(lane < BLOCK / 32 ? of_warp[lane] : T(0));
  __syncthreads();
  return sum;
}

// As in rung 8: true in every thread of the block that arrives last.
__device__ __forceinline__ bool last_block(T partial, T* __restrict__ partials,
                                           unsigned* __restrict__ ticket) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = partial;
    __threadfence();
    last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
    if (last) __threadfence();
  }
  __syncthreads();
  return last;
}

__device__ __forceinline__ T vector_sum(const Vector& v) {
  T sum = v.at[0];
#pragma unroll
  for (int k = 1; k < PER_VECTOR; ++k) sum += v.at[k];
  return sum;
}

// The sum of this thread's share of a tile: VECTORS loads, all issued before
// the first is used. first: its first vector; vectors: of the array.
// --8<-- [start:tile]
__device__ __forceinline__ T tile_sum(const Vector* __restrict__ in,
                                      long long first, long long vectors) {
  Vector v[VECTORS] = {};  // zeros where the tile reaches past the end
  if (first + (VECTORS - 1) * BLOCK < vectors) {
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) v[k] = in[first + k * BLOCK];
  } else {
#pragma unroll
    for (int k = 0; k < VECTORS; ++k)
      if (first + k * BLOCK < vectors) v[k] = in[first + k * BLOCK];
  }
  T sum = vector_sum(v[0]);
#pragma unroll
  for (int k = 1; k < VECTORS; ++k) sum += vector_sum(v[k]);
  return sum;
}
// --8<-- [end:tile]

// The sum of this thread's share of the partial sums. They come from other SMs,
// so the loads bypass the L1 cache. The block is alone, so only its own loads
// in flight hide their latency.
// --8<-- [start:partials]
__device__ __forceinline__ T partials_sum(const T* partials, int blocks) {
  const int vectors = blocks / PER_VECTOR;
  T sum = T(0);
#pragma unroll 4
  for (int v = threadIdx.x; v < vectors; v += BLOCK) {
    const uint4 raw = __ldcg(reinterpret_cast<const uint4*>(partials) + v);
    sum += vector_sum(reinterpret_cast<const Vector&>(raw));
  }
  for (int b = vectors * PER_VECTOR + threadIdx.x; b < blocks; b += BLOCK)
    sum += __ldcg(partials + b);
  return sum;
}
// --8<-- [end:partials]

// out[0] = sum of in[0 .. n); in is aligned to 16 bytes, as cuMemAlloc returns
// it. One block per tile of BLOCK * VECTORS vectors. partials: one element per
// block. ticket: 0 before the first launch. Launches that may overlap need a
// ticket and partial sums of their own.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(BLOCK)
    reduce_limit(const T* __restrict__ in, T* __restrict__ out, long long n,
                 T* __restrict__ partials, unsigned* __restrict__ ticket) {
  const long long vectors = n / PER_VECTOR;
  const long long first =
      (long long)blockIdx.x * (BLOCK * VECTORS) + threadIdx.x;
  T sum = tile_sum(reinterpret_cast<const Vector*>(in), first, vectors);
  // Fewer elements than one vector holds:
  const long long tail = vectors * PER_VECTOR + threadIdx.x;
  if (blockIdx.x == 0 && tail < n) sum += in[tail];
  sum = block_sum(sum);
  if (gridDim.x == 1) {  // no other block to wait for
    if (threadIdx.x == 0) out[0] = sum;
  } else if (last_block(sum, partials, ticket)) {
    sum = block_sum(partials_sum(partials, gridDim.x));
    if (threadIdx.x == 0) out[0] = sum;
  }
}
// --8<-- [end:kernel]
