// Rung 10: a copy engine of the SM brings the data into shared memory, so that
// the bytes in flight take no registers and stay the same from first to last.
// @rung 100 kernel=reduce_bulk block=256 blocks=64,128,256,512,1024 launches=one launch=bulk
// requires: sm_90
#include "limit.cu"

#ifndef STAGES
#define STAGES 2  // pieces of a block in shared memory or on their way
#endif
// Vectors in a piece; each thread adds VECTORS of them.
constexpr int PIECE = BLOCK * VECTORS;

// A barrier in shared memory that counts bytes, as in gemm/ladder/tma.cu. A
// phase ends when the announced bytes have arrived. Phases are told apart by
// their parity: 0, 1, 0, ...
// --8<-- [start:barrier]
using Barrier = unsigned long long;

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ void init(Barrier* barrier) {
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier))
      : "memory");
}

__device__ __forceinline__ void wait(Barrier* barrier, int parity) {
  int done = 0;
  while (!done) {
    asm volatile(
        "{ .reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.b32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
}
// --8<-- [end:barrier]

// Announces `bytes` bytes, a multiple of 16, to the barrier, and has the copy
// engine bring them. Returns at once.
// --8<-- [start:bring]
__device__ __forceinline__ void bring(Vector* to, const Vector* from, int bytes,
                                      Barrier* barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}
// --8<-- [end:bring]

// The sum of this thread's share of a piece of `count` vectors.
__device__ __forceinline__ T piece_sum(const Vector* piece, long long count) {
  T sum = T(0);
  if (count >= PIECE) {
#pragma unroll 8
    for (int k = 0; k < VECTORS; ++k)
      sum += vector_sum(piece[k * BLOCK + threadIdx.x]);
  } else {
    for (int v = threadIdx.x; v < count; v += BLOCK)
      sum += vector_sum(piece[v]);
  }
  return sum;
}

// out[0] = sum of in[0 .. n); in is aligned to 16 bytes. Block b takes pieces
// b, b + gridDim.x, ... Dynamic shared memory: STAGES pieces. partials and
// ticket are those of rung 9.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(BLOCK)
    reduce_bulk(const T* __restrict__ in, T* __restrict__ out, long long n,
                T* __restrict__ partials, unsigned* __restrict__ ticket) {
  extern __shared__ __align__(128) Vector ring[];
  __shared__ Barrier arrived[STAGES];
  const Vector* data = reinterpret_cast<const Vector*>(in);
  const long long vectors = n / PER_VECTOR;
  // Thread 0 asks for piece p, if there is one, into a stage of the ring.
  const auto ask = [&](long long p, int stage) {
    const long long left = vectors - p * PIECE;
    if (threadIdx.x == 0 && left > 0)
      bring(ring + stage * PIECE, data + p * PIECE,
            16 * (left < PIECE ? (int)left : PIECE), &arrived[stage]);
  };
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) init(&arrived[s]);
    // The copy engine must see the barriers, too.
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  for (int s = 0; s < STAGES; ++s)
    ask(blockIdx.x + (long long)s * gridDim.x, s);
  T sum = T(0);
  int stage = 0, parity = 0;
  for (long long p = blockIdx.x; p * PIECE < vectors; p += gridDim.x) {
    wait(&arrived[stage], parity);
    sum += piece_sum(ring + stage * PIECE, vectors - p * PIECE);
    __syncthreads();  // no thread reads this stage anymore
    ask(p + (long long)STAGES * gridDim.x, stage);
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }
  // --8<-- [end:kernel]
  const long long tail = vectors * PER_VECTOR + threadIdx.x;
  if (blockIdx.x == 0 && tail < n) sum += in[tail];
  sum = block_sum(sum);
  if (last_block(sum, partials, ticket)) {
    sum = block_sum(partials_sum(partials, gridDim.x));
    if (threadIdx.x == 0) out[0] = sum;
  }
}
