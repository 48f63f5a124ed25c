// Rung 10: for short arrays; a partial sum and the sign that it is there travel in one word, so
// that nobody needs a fence or a ticket. A longer array is left to rung 9.
// @rung kernel=reduce_flags block=512 blocks=64,128,256,512,1024 vectors=4 few=512 long=limit grid=tiles launches=one
#ifndef ELEMENT
#define ELEMENT float  // or int
#endif
#ifndef BLOCK
#define BLOCK 512
#endif
#ifndef VECTORS
#define VECTORS 4  // loads of 16 bytes that each thread has in flight
#endif
using T = ELEMENT;
using Word = unsigned long long;

struct alignas(16) Vector {  // 16 bytes: what one load instruction brings at most
  T at[16 / sizeof(T)];
};
constexpr int PER_VECTOR = 16 / sizeof(T);

__device__ __forceinline__ T warp_sum(T sum) {
#pragma unroll
  for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half);
  return sum;
}

// Sum over the block; only thread 0 holds it. Ends with every thread past its use of shared memory.
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

__device__ __forceinline__ T vector_sum(const Vector& v) {
  T sum = v.at[0];
#pragma unroll
  for (int k = 1; k < PER_VECTOR; ++k) sum += v.at[k];
  return sum;
}

// This thread's share: VECTORS loads, `stride` vectors apart, all issued before the first is used.
__device__ __forceinline__ T tile_sum(const Vector* __restrict__ in, long long first, int stride,
                                      long long vectors) {
  Vector v[VECTORS] = {};  // zeros where the tile reaches past the end
  if (first + (VECTORS - 1) * stride < vectors) {
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) v[k] = in[first + k * stride];
  } else {
#pragma unroll
    for (int k = 0; k < VECTORS; ++k)
      if (first + k * stride < vectors) v[k] = in[first + k * stride];
  }
  T sum = vector_sum(v[0]);
#pragma unroll
  for (int k = 1; k < VECTORS; ++k) sum += vector_sum(v[k]);
  return sum;
}

// A word of 8 bytes is written, and read, all at once: whoever sees the number of this launch in
// its upper half has the sum of this launch in its lower half. `relaxed` asks for no order with
// anything else, `gpu` makes the word go to L2, where all SMs see it.
// --8<-- [start:word]
__device__ __forceinline__ void post(Word* word, T sum, unsigned launch) {
  const Word both = (Word)launch << 32 | reinterpret_cast<const unsigned&>(sum);
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(both) : "memory");
}

__device__ __forceinline__ T await(const Word* word, unsigned launch) {
  Word both;
  do {
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(both) : "l"(word) : "memory");
  } while ((unsigned)(both >> 32) != launch);
  const unsigned low = (unsigned)both;
  return reinterpret_cast<const T&>(low);
}
// --8<-- [end:word]

// out[0] = sum of in[0 .. n); in is aligned to 16 bytes, as cuMemAlloc returns it. The blocks share
// the vectors in turn, at most VECTORS for a thread. partials: not used, but the rungs of one
// launch are all called alike. state: 0 before the first launch; state[1] counts the launches, and
// from state[2] on there is a Word for each block.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(BLOCK)
    reduce_flags(const T* __restrict__ in, T* __restrict__ out, long long n,
                 T* __restrict__ partials, unsigned* __restrict__ state) {
  // The number of this launch arrives while the data are still on their way.
  const unsigned launch = __ldcg(state + 1) + 1;
  const long long vectors = n / PER_VECTOR;
  const long long first = blockIdx.x * BLOCK + threadIdx.x;
  T sum = tile_sum(reinterpret_cast<const Vector*>(in), first, gridDim.x * BLOCK, vectors);
  // --8<-- [end:kernel]
  const long long tail = vectors * PER_VECTOR + threadIdx.x;  // less than a vector is left
  if (blockIdx.x == 0 && tail < n) sum += in[tail];
  // --8<-- [start:handover]
  sum = block_sum(sum);
  const unsigned last = gridDim.x - 1;
  Word* words = reinterpret_cast<Word*>(state + 2);
  if (blockIdx.x != last) {
    if (threadIdx.x == 0) post(words + blockIdx.x, sum, launch);
    return;
  }
  if (last > 0) {  // one block waits, and the others need nothing from it
    T total = threadIdx.x == 0 ? sum : T(0);
    for (unsigned b = threadIdx.x; b < last; b += BLOCK) total += await(words + b, launch);
    sum = block_sum(total);
  }
  if (threadIdx.x == 0) {
    state[1] = launch;  // all have read it, or could not post
    out[0] = sum;
  }
}
// --8<-- [end:handover]
