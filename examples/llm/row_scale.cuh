// The second half of an RMSNorm that two products have between them.
#pragma once

// Over the four lanes that have a row.
__device__ __forceinline__ float over_quad(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// --8<-- [start:norm]
// RMSNorm in two halves. y = W (x w / rms) is W (x w) / rms, a number for each
// row: whoever computes the last of x stores x w in bf16 and, for each of its
// tiles, the sum of the squares of x in a row; whoever multiplies it divides
// the results. So no launch stands between the two.
struct RowScale {
  const float* squares;  // n x parts; or null, then the factor is 1
  int parts;
  float share, eps;  // share: one by the number of columns of x

  __device__ __forceinline__ float of(int row, int n) const {
    if (!squares) return 1.0f;
    float sum = 0.0f;
    if (row < n)
      for (int part = threadIdx.x % 4; part < parts; part += 4)
        sum += squares[(size_t)row * parts + part];
    return rsqrtf(over_quad(sum) * share + eps);
  }
};
// --8<-- [end:norm]
