// Rung 11: for short arrays; a partial sum and the sign that it is there travel
// in one word, so that nobody needs a fence or a ticket. A longer array is left
// to rung 9 or 10: see ladder.py.
// @rung 110 kernel=reduce_flags block=256 blocks=64,128,256,512,1024 vectors=4 launches=one launch=flags
#ifndef ELEMENT
#define ELEMENT float  // or int
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef VECTORS
#define VECTORS 4  // loads of 16 bytes that each thread has in flight
#endif
using T = ELEMENT;
using Word = unsigned long long;

// 16 bytes: what one load instruction brings at most.
struct alignas(16) Vector {
  T at[16 / sizeof(T)];
};
constexpr int PER_VECTOR = 16 / sizeof(T), WARPS = BLOCK / 32;

// Sum over the first LANES lanes of a warp, the others holding 0; only lane 0
// needs it.
template <int LANES>
__device__ __forceinline__ T lanes_sum(T sum) {
#if __CUDA_ARCH__ >= 800  // which have an instruction for it, for integers
  if constexpr (T(1) / 2 == T(0)) {
    sum = __reduce_add_sync(0xffffffffu, (int)sum);
  } else
#endif
  {
#pragma unroll
    for (int half = LANES / 2; half > 0; half /= 2)
      sum += __shfl_down_sync(0xffffffffu, sum, half);
  }
  return sum;
}

// Sum over the block; only thread 0 holds it. of_warp: WARPS elements that
// nobody else uses, so that no second barrier is needed.
__device__ __forceinline__ T block_sum(T sum, T* of_warp) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  sum = lanes_sum<32>(sum);
  if (lane == 0) of_warp[warp] = sum;
  __syncthreads();
  if (warp == 0) sum = lanes_sum<WARPS>(lane < WARPS ? of_warp[lane] : T(0));
  return sum;
}

__device__ __forceinline__ T vector_sum(const Vector& v) {
  T sum = v.at[0];
#pragma unroll
  for (int k = 1; k < PER_VECTOR; ++k) sum += v.at[k];
  return sum;
}

// A word of 8 bytes is written, and read, all at once: whoever sees the number
// of this launch in its upper half has the sum of this launch in its lower
// half. `relaxed` asks for no order with anything else, `gpu` makes the word go
// to L2, where all SMs see it. After 2^32 launches the numbers begin again; no
// word is that old, unless hours of launches of fewer blocks lie between.
// --8<-- [start:word]
__device__ __forceinline__ void post(Word* word, T sum, unsigned launch) {
  const Word both = (Word)launch << 32 | reinterpret_cast<const unsigned&>(sum);
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(both)
               : "memory");
}

__device__ __forceinline__ T await(const Word* word, unsigned launch) {
  Word both;
  do {
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                 : "=l"(both)
                 : "l"(word)
                 : "memory");
  } while ((unsigned)(both >> 32) != launch);
  const unsigned low = (unsigned)both;
  return reinterpret_cast<const T&>(low);
}
// --8<-- [end:word]

// out[0] = sum of in[0 .. n), n < 2^31; in is aligned to 16 bytes, as
// cuMemAlloc returns it. One block per tile of BLOCK * VECTORS vectors.
// partials: not used, but the rungs of one launch are all called alike. state:
// 0 before the first launch; state[1] counts the launches of several blocks,
// and from state[2] on there is a Word for each block. Launches that may
// overlap need a state of their own.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(BLOCK)
    reduce_flags(const T* __restrict__ in, T* __restrict__ out, long long n,
                 T* __restrict__ partials, unsigned* __restrict__ state) {
  __shared__ T of_warp[2][WARPS];
  const unsigned block = blockIdx.x, blocks = gridDim.x;
  const unsigned length = (unsigned)n, vectors = length / PER_VECTOR;
  const unsigned first = block * (BLOCK * VECTORS) + threadIdx.x;
  Word* words = reinterpret_cast<Word*>(state + 2);
  Vector v[VECTORS] = {};  // zeros where the tile reaches past the end
#pragma unroll
  for (int k = 0; k < VECTORS; ++k)
    if (first + k * BLOCK < vectors)
      v[k] = reinterpret_cast<const Vector*>(in)[first + k * BLOCK];
  // The number of this launch arrives while the data are still on their way.
  const unsigned launch = blocks > 1 ? __ldcg(state + 1) + 1 : 0;
  T sum = T(0);
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) sum += vector_sum(v[k]);
  // --8<-- [end:kernel]
  // Fewer elements than one vector holds:
  const unsigned tail = vectors * PER_VECTOR + threadIdx.x;
  if (block == 0 && tail < length) sum += in[tail];
  // --8<-- [start:handover]
  sum = block_sum(sum, of_warp[0]);
  if (block > 0) {
    if (threadIdx.x == 0) post(words + block, sum, launch);
    return;
  }
  if (blocks > 1) {  // one block waits, and the others need nothing from it
    T total = threadIdx.x == 0 ? sum : T(0);
    for (unsigned b = 1 + threadIdx.x; b < blocks; b += BLOCK)
      total += await(words + b, launch);
    sum = block_sum(total, of_warp[1]);
    // All have read it, or could not post.
    if (threadIdx.x == 0) state[1] = launch;
  }
  if (threadIdx.x == 0) out[0] = sum;
}
// --8<-- [end:handover]
