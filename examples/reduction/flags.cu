// Rung 10: in a small grid a partial sum and the sign that it is there travel in one word, so that
// nobody needs a fence or a ticket; a large grid ends as in rung 9.
// @rung kernel=reduce_flags block=512 blocks=64,128,256,512,1024 vectors=4 few=512 grid=tiles launches=one
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

constexpr unsigned FEW = 512;  // blocks up to which partial sums travel as words, `few=` above

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

// As in rung 8.
__device__ __forceinline__ bool last_block(T partial, T* __restrict__ partials,
                                           unsigned* __restrict__ ticket) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = partial;
    __threadfence();
    last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
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

// This thread's share of the partial sums. They come from other SMs, so the loads pass by the L1
// cache; and this block is alone, so only its own loads in flight hide their latency.
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

// out[0] = sum of in[0 .. n); in is aligned to 16 bytes, as cuMemAlloc returns it. Up to FEW
// blocks, which share the vectors in turn; or one block per tile of BLOCK * VECTORS vectors.
// partials: one element per block. state: 2 + 2 * FEW words of 4 bytes, aligned to 8 and 0 before
// the first launch: the ticket, the number of launches with few blocks, and a Word per block.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(BLOCK)
    reduce_flags(const T* __restrict__ in, T* __restrict__ out, long long n,
                 T* __restrict__ partials, unsigned* __restrict__ state) {
  const bool few = gridDim.x <= FEW;
  // The number of this launch arrives while the data are still on their way.
  const unsigned launch = few ? __ldcg(state + 1) + 1 : 0;
  const long long vectors = n / PER_VECTOR;
  const long long first = (long long)blockIdx.x * (few ? BLOCK : BLOCK * VECTORS) + threadIdx.x;
  const int stride = few ? gridDim.x * BLOCK : BLOCK;
  T sum = tile_sum(reinterpret_cast<const Vector*>(in), first, stride, vectors);
  // --8<-- [end:kernel]
  const long long tail = vectors * PER_VECTOR + threadIdx.x;  // less than a vector is left
  if (blockIdx.x == 0 && tail < n) sum += in[tail];
  // --8<-- [start:handover]
  sum = block_sum(sum);
  if (few && gridDim.x > 1) {
    Word* words = reinterpret_cast<Word*>(state + 2);
    if (blockIdx.x != gridDim.x - 1) {
      if (threadIdx.x == 0) post(words + blockIdx.x, sum, launch);
      return;
    }
    // One block waits, and the others need nothing from it.
    T total = threadIdx.x == 0 ? sum : T(0);
    for (int b = threadIdx.x; b < gridDim.x - 1; b += BLOCK) total += await(words + b, launch);
    sum = block_sum(total);
    if (threadIdx.x == 0) state[1] = launch;  // all have read it, or could not post
  } else if (gridDim.x > 1) {
    if (!last_block(sum, partials, state)) return;
    sum = block_sum(partials_sum(partials, gridDim.x));
  }
  if (threadIdx.x == 0) out[0] = sum;
}
// --8<-- [end:handover]
