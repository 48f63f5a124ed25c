// Means of random samples, the same bits for every grid.
//
//   count_pi    how many of n random points lie in the quarter of a circle
//   price       sum and sum of squares of an option's payoffs, piece by piece
//   add_pieces  the sums of all pieces, in one order
//
// @instance price<false>
// @instance price<true>
#include "philox.cuh"

constexpr int BLOCK = 256;

// --8<-- [start:warp]
template <class T>
__device__ __forceinline__ T block_sum(T sum) {
  __shared__ T of_warp[BLOCK / 32];
#pragma unroll
  for (int half = 16; half > 0; half /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, half);
  __syncthreads();  // of_warp may still be read
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < BLOCK / 32; ++w) sum += of_warp[w];
  return sum;  // thread 0 has it
}
// --8<-- [end:warp]

// Points 2 i and 2 i + 1 come from the four words of counter i. Integers: the
// order of the additions does not matter. hits: 0 before.
// --8<-- [start:pi]
extern "C" __global__ void __launch_bounds__(BLOCK)
    count_pi(unsigned long long* hits, long long points,
             unsigned long long seed, unsigned long long stream) {
  const Stream numbers = {seed, stream};
  const long long stride = (long long)gridDim.x * BLOCK;
  unsigned long long mine = 0;
  for (long long i = (long long)blockIdx.x * BLOCK + threadIdx.x;
       2 * i < points; i += stride) {
    const uint4 w = numbers.words(i, i >> 32);
    const float ax = uniform_of(w.x), ay = uniform_of(w.y);
    const float bx = uniform_of(w.z), by = uniform_of(w.w);
    mine += ax * ax + ay * ay < 1.0f;
    mine += 2 * i + 1 < points && bx * bx + by * by < 1.0f;
  }
  mine = block_sum(mine);
  if (threadIdx.x == 0) atomicAdd(hits, mine);
}
// --8<-- [end:pi]

// A call option at the end of one period: its payoff is max(s exp(drift +
// volatility z) - strike, 0), z normal. Piece p has the samples PIECE * p
// and so on; a block computes one after another, and the sums of a piece
// are added in the same order whichever block does it. sums: two for each
// piece.
// --8<-- [start:price]
constexpr int EACH = 16;  // counters of a thread in a piece
constexpr long long PIECE = 4LL * BLOCK * EACH;

template <bool FAST>
__global__ void __launch_bounds__(BLOCK)
    price(double* __restrict__ sums, long long samples, float s, float strike,
          float drift, float volatility, unsigned long long seed,
          unsigned long long stream) {
  const Stream numbers = {seed, stream};
  const long long pieces = (samples + PIECE - 1) / PIECE;
  for (long long piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    double sum = 0, squares = 0;
#pragma unroll 2
    for (int e = 0; e < EACH; ++e) {
      const long long i = (piece * EACH + e) * BLOCK + threadIdx.x;
      const uint4 w = numbers.words(i, i >> 32);
      const float2 a = normal_pair<FAST>(w.x, w.y);
      const float2 b = normal_pair<FAST>(w.z, w.w);
      const float z[4] = {a.x, a.y, b.x, b.y};
      float four = 0.0f, four_squares = 0.0f;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float power = drift + volatility * z[k];
        const float end = s * (FAST ? __expf(power) : expf(power));
        float payoff = fmaxf(end - strike, 0.0f);
        if (4 * i + k >= samples) payoff = 0.0f;
        four += payoff;
        four_squares += payoff * payoff;
      }
      sum += four;
      squares += four_squares;
    }
    sum = block_sum(sum);
    squares = block_sum(squares);
    if (threadIdx.x == 0) {
      sums[2 * piece] = sum;
      sums[2 * piece + 1] = squares;
    }
  }
}
// --8<-- [end:price]

// One block. totals: the two sums.
extern "C" __global__ void __launch_bounds__(BLOCK)
    add_pieces(const double* __restrict__ sums, double* __restrict__ totals,
               long long pieces) {
  double sum = 0, squares = 0;
  for (long long p = threadIdx.x; p < pieces; p += BLOCK) {
    sum += sums[2 * p];
    squares += sums[2 * p + 1];
  }
  sum = block_sum(sum);
  squares = block_sum(squares);
  if (threadIdx.x == 0) {
    totals[0] = sum;
    totals[1] = squares;
  }
}
