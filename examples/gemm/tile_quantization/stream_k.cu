// Stream-K: the steps of depth of all tiles lie in one line, which is cut into
// equal pieces, one for each block. The grid decides: with a block per tile
// every piece is a tile, and nothing is shared; with as many blocks as the GPU
// holds at a time, all of them end together.
//
//   add_steps       the products of some steps of a tile
//   leave, collect  a block leaves its sums, another one adds them to its own
//   sgemm_stream_k  the kernel
#include "gemm/ladder/edges.cuh"

// Adds to `sum` the products of steps [from, to) of the depth of the tile that
// begins in row `top` and column `left` of C.
template <int BM, int BN, int BK, int TM, int TN>
__device__ __forceinline__ void add_steps(float (&sum)[TM][TN],
                                          float (&As)[BK][BM + 4],
                                          float (&Bs)[BK][BN], const float* A,
                                          const float* B, int m, int n, int k,
                                          int top, int left, int from, int to,
                                          bool aligned) {
  constexpr int THREADS = BM * BN / (TM * TN), NEXT = BN / TN * 4;
  const int t = threadIdx.x;
  const int x = t % (BN / TN) * 4, y = t / (BN / TN) * TM;
  for (int start = from * BK; start < to * BK; start += BK) {
#pragma unroll
    for (int first = 0; first < BM * BK / 4; first += THREADS) {
      const int i = (first + t) / 2;
      const int row = i % BM, inner = i / BM * 8 + t % 2 * 4;
      const float4 a = load4(A, top + row, start + inner, m, k, aligned);
      As[inner][row] = a.x;
      As[inner + 1][row] = a.y;
      As[inner + 2][row] = a.z;
      As[inner + 3][row] = a.w;
    }
#pragma unroll
    for (int first = 0; first < BK * BN / 4; first += THREADS) {
      const int i = first + t;
      const int inner = i / (BN / 4), column = i % (BN / 4) * 4;
      const float4 b = load4(B, start + inner, left + column, k, n, aligned);
      *reinterpret_cast<float4*>(&Bs[inner][column]) = b;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < BK; ++i) {
      __align__(16) float a[TM], b[TN];
#pragma unroll
      for (int r = 0; r < TM; r += 4)
        *reinterpret_cast<float4*>(&a[r]) =
            *reinterpret_cast<const float4*>(&As[i][y + r]);
#pragma unroll
      for (int c = 0; c < TN; c += 4)
        *reinterpret_cast<float4*>(&b[c]) =
            *reinterpret_cast<const float4*>(&Bs[i][x + c / 4 * NEXT]);
#pragma unroll
      for (int r = 0; r < TM; ++r)
#pragma unroll
        for (int c = 0; c < TN; ++c) sum[r][c] += a[r] * b[c];
    }
    __syncthreads();
  }
}

// A block leaves its sums, TM x TN of each of its THREADS threads, for the
// owner of the tile: the block that has the tile's first step.
// --8<-- [start:leave]
template <int TM, int TN, int THREADS>
__device__ __forceinline__ void leave(const float (&sum)[TM][TN],
                                      float* partials, unsigned* flags) {
  float* const mine =
      partials + (size_t)blockIdx.x * TM * TN * THREADS + threadIdx.x;
#pragma unroll
  for (int i = 0; i < TM * TN; ++i) mine[i * THREADS] = sum[i / TN][i % TN];
  __threadfence();  // the sums before the flag
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(flags + blockIdx.x, 1u);
}
// --8<-- [end:leave]

// The owner waits for the blocks after it, one by one, and adds what each has
// left: always in the same order. It sets the flag of that block to 0 again, as
// the next launch has to find it.
// --8<-- [start:collect]
template <int TM, int TN, int THREADS>
__device__ __forceinline__ void collect(float (&sum)[TM][TN], int block,
                                        const float* partials,
                                        unsigned* flags) {
  if (threadIdx.x == 0)
    while (atomicExch(flags + block, 0u) == 0) __nanosleep(100);
  __syncthreads();
  __threadfence();
  const float* const from =
      partials + (size_t)block * TM * TN * THREADS + threadIdx.x;
#pragma unroll
  for (int i = 0; i < TM * TN; ++i)
    sum[i / TN][i % TN] += __ldcg(from + i * THREADS);
}
// --8<-- [end:collect]

// C = A B, row-major: A is m x k, B is k x n, C is m x n. Grid: a block per
// tile, or as many blocks as the GPU holds at a time (BLOCKS on an SM) and no
// more, for blocks wait for each other; never more than there are steps.
//
// partials: BM * BN words for each block; flags: a 0 for each block. Both
// belong to one launch until it has ended: launches that may overlap, on two
// streams, need their own.
//
//   BM, BN  rows and columns of a tile of C
//   BK      steps of depth in shared memory at a time: a multiple of 8
//   TM, TN  rows and columns of C that a thread computes: multiples of 4
//   BLOCKS  blocks of BM * BN / (TM * TN) threads that share an SM
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int TM, int TN, int BLOCKS>
__global__ void __launch_bounds__(BM* BN / (TM * TN), BLOCKS)
    sgemm_stream_k(const float* __restrict__ A, const float* __restrict__ B,
                   float* __restrict__ C, int m, int n, int k, float* partials,
                   unsigned* flags) {
  constexpr int THREADS = BM * BN / (TM * TN), NEXT = BN / TN * 4;
  static_assert(BM * BK % (4 * THREADS) == 0 && BK * BN % (4 * THREADS) == 0,
                "shared evenly");
  __shared__ __align__(16) float As[BK][BM + 4];
  __shared__ __align__(16) float Bs[BK][BN];
  const int columns = (n + BN - 1) / BN, rows = (m + BM - 1) / BM;
  const int steps = (k + BK - 1) / BK;  // of a tile
  const long long all = (long long)rows * columns * steps;
  // Matrices may begin at any word; 16 bytes at a time need a multiple of them.
  const size_t places = (size_t)A | (size_t)B | (size_t)C;
  const bool aligned = k % 4 == 0 && n % 4 == 0 && places % 16 == 0;
  // --8<-- [start:walk]
  // Where the piece of a block begins.
  const auto piece = [&](int block) { return all * block / gridDim.x; };
  const long long end = piece(blockIdx.x + 1);
  for (long long at = piece(blockIdx.x); at < end;) {
    const int tile = at / steps, from = at % steps;
    const int to = (int)min((long long)steps, from + end - at);
    const int top = tile / columns * BM, left = tile % columns * BN;
    float sum[TM][TN] = {};
    add_steps<BM, BN, BK, TM, TN>(sum, As, Bs, A, B, m, n, k, top, left, from,
                                  to, aligned);
    at += to - from;
    if (from > 0) {  // another block has the first step
      leave<TM, TN, THREADS>(sum, partials, flags);
      continue;
    }
    // The next blocks that have steps of this tile began with these steps, so
    // this wait is not long.
    for (int block = blockIdx.x + 1;
         to < steps && piece(block) < (tile + 1LL) * steps; ++block)
      collect<TM, TN, THREADS>(sum, block, partials, flags);
    // --8<-- [end:walk]
    const int t = threadIdx.x, x = t % (BN / TN) * 4, y = t / (BN / TN) * TM;
#pragma unroll
    for (int r = 0; r < TM; ++r)
#pragma unroll
      for (int c = 0; c < TN; c += 4)
        update4(C, top + y + r, left + x + c / 4 * NEXT, m, n, aligned, 1.0f,
                &sum[r][c], 0.0f);
  }
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance sgemm_stream_k<64,128,8,8,8,3>
