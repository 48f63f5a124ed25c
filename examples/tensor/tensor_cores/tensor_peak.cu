// How fast the FMA units and the tensor cores are if nothing else has to be
// done: each warp repeats instructions on values that stay in its registers.
// Every thread writes a sum, so that the compiler removes nothing. cycles: the
// cycles of the first warp of each block.
//
//   peak_wmma  the tensor cores
//   peak_fma   the FMA units
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

// CHAINS products of 16 x 16 x 16 in each step, none of which waits for another
// one. Grid: any number of blocks.
template <int CHAINS>
__global__ void peak_wmma(const half* A, const half* B, float* out,
                          long long* cycles, int steps) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[CHAINS];
  wmma::load_matrix_sync(a, A, 16);
  wmma::load_matrix_sync(b, B, 16);
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) wmma::fill_fragment(sums[c], c);
  const long long begin = clock64();
  // --8<-- [start:wmma]
#pragma unroll 1
  for (int step = 0; step < steps; ++step)
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) wmma::mma_sync(sums[c], a, b, sums[c]);
  // --8<-- [end:wmma]
  float total = 0.0f;
#pragma unroll
  for (int c = 0; c < CHAINS; ++c)
    for (int i = 0; i < sums[c].num_elements; ++i) total += sums[c].x[i];
  const long long end = clock64();
  out[blockIdx.x * blockDim.x + threadIdx.x] = total;
  if (threadIdx.x == 0) cycles[blockIdx.x] = end - begin;
}

// The same for fp32 FMAs: 16 of them in each step, none of which waits for
// another one.
extern "C" __global__ void peak_fma(float x, float y, float* out,
                                    long long* cycles, int steps) {
  float sum[16];
#pragma unroll
  for (int c = 0; c < 16; ++c) sum[c] = threadIdx.x + c;
  const long long begin = clock64();
#pragma unroll 4
  for (int step = 0; step < steps; ++step)
#pragma unroll
    for (int c = 0; c < 16; ++c) sum[c] = fmaf(sum[c], x, y);
  float total = 0.0f;
#pragma unroll
  for (int c = 0; c < 16; ++c) total += sum[c];
  const long long end = clock64();
  out[blockIdx.x * blockDim.x + threadIdx.x] = total;
  if (threadIdx.x == 0) cycles[blockIdx.x] = end - begin;
}

// Instances that are compiled by the tests:
// @instance peak_wmma<1>
// @instance peak_wmma<2>
// @instance peak_wmma<4>
