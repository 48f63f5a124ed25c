// One product on the tensor cores, by one warp: D = A B.
// requires: sm_80
#include "ptx/mma.cuh"

// A: 16 x 16, row by row. B: 16 x 8, column by column, as keys are in K^T, and
// outputs of a linear layer in W^T. D: 16 x 8. One block of 32 threads.
// --8<-- [start:kernel]
extern "C" __global__ void first_mma(const __nv_bfloat16* A,
                                     const __nv_bfloat16* B, float* D) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  // Two neighboring elements in one word; both addresses are even.
  const auto pair = [](const __nv_bfloat16* at) {
    return *reinterpret_cast<const unsigned*>(at);
  };
  unsigned a[4], b[2];
  for (int i = 0; i < 4; ++i)
    a[i] = pair(A + (g + i % 2 * 8) * 16 + 2 * t + i / 2 * 8);
  for (int i = 0; i < 2; ++i) b[i] = pair(B + g * 16 + 2 * t + i * 8);
  float d[4] = {};
  mma(d, a, b[0], b[1]);
  for (int i = 0; i < 4; ++i) D[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
}
// --8<-- [end:kernel]
