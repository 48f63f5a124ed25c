// The second step of a product whose depth is split: add up the parts.
// @instance add_splits<__nv_bfloat16>
// @instance add_splits<float>
// requires: sm_80
#include "results.cuh"

// C = alpha (sum of `splits` matrices) + beta C. The parts are m x n in fp32,
// one behind the other; C has rows of ldc. Always added in the same order.
// Grid: any number of blocks of any number of threads.
// --8<-- [start:kernel]
template <class Out>
__global__ void add_splits(const float* __restrict__ parts, Out* __restrict__ C,
                           int m, int n, int ldc, int splits, float alpha,
                           float beta) {
  const size_t size = (size_t)m * n, step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < size;
       i += step) {
    float sum = 0.0f;
    for (int s = 0; s < splits; ++s) sum += parts[s * size + i];
    Out* const to = C + i / n * ldc + i % n;
    store_one(to, alpha * sum + (beta != 0.0f ? beta * as_float(*to) : 0.0f));
  }
}
// --8<-- [end:kernel]
