// How fast mma.sync can be: products of what is in registers, and nothing else.
// requires: sm_80
#include "measure/stamps.cuh"
#include "ptx/mma.cuh"

// A warp multiplies 64 x 64 as the large rungs do, `steps` times. factors: 128
// words of bf16 pairs. out: a word for each thread. stamps: 4 words for each
// block, two at the beginning and two at the end. Grid: any number of blocks of
// 256 threads. ORDER says which products follow each other:
//
//   0  eight with the same A
//   1  four with the same B
//   2  each with another A and another B
// --8<-- [start:kernel]
template <int ORDER>
__global__ void __launch_bounds__(256, 1)
    mma_peak(const unsigned* __restrict__ factors, float* __restrict__ out,
             long long* __restrict__ stamps, int steps) {
  constexpr int MT = 4, NT = 8;  // matrices of A and of B
  unsigned a[MT][4], b[NT][2];
#pragma unroll
  for (int i = 0; i < MT * 4; ++i)
    a[i / 4][i % 4] = factors[(threadIdx.x + 7 * i) % 128];
#pragma unroll
  for (int j = 0; j < NT * 2; ++j)
    b[j / 2][j % 2] = factors[(threadIdx.x * 3 + j) % 128];
  float sum[MT][NT][4] = {};
  stamp(stamps + blockIdx.x * 4);
#pragma unroll 1
  for (int step = 0; step < steps; ++step)
#pragma unroll
    for (int x = 0; x < MT * NT; ++x) {
      const int i = ORDER == 0   ? x / NT
                    : ORDER == 1 ? x % MT
                                 : (x + x / NT) % MT;
      const int j = ORDER == 1 ? x / MT : x % NT;
      mma(sum[i][j], a[i], b[j][0], b[j][1]);
    }
  __syncthreads();
  stamp(stamps + blockIdx.x * 4 + 2);
  float total = 0.0f;
#pragma unroll
  for (int x = 0; x < MT * NT * 4; ++x)
    total += sum[x / 4 / NT][x / 4 % NT][x % 4];
  out[(size_t)blockIdx.x * blockDim.x + threadIdx.x] = total;
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance mma_peak<0>
// @instance mma_peak<1>
// @instance mma_peak<2>
