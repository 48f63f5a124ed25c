// Four neighboring words of a row-major matrix at a time, right up to its
// edges.
//
//   load4    loads four words; zeros beyond the edges
//   blend    alpha * sum + beta * c
//   update4  stores four results: C = alpha * sum + beta * C
#pragma once

// aligned, here and below: the number of columns is a multiple of 4. Then four
// words that begin in a column that is a multiple of 4 begin at a multiple of
// 16 bytes, as one instruction needs them, and are all inside the matrix or all
// outside. Otherwise they are moved one by one.

// Words column to column + 3 of a row of X, which has `rows` x `columns`; zeros
// where the matrix ends.
// --8<-- [start:load]
__device__ __forceinline__ float4 load4(const float* __restrict__ X, int row,
                                        int column, int rows, int columns,
                                        bool aligned) {
  float4 words = {0, 0, 0, 0};
  if (row < rows && column < columns) {
    const float* x = X + (size_t)row * columns + column;
    if (aligned) {
      words = *reinterpret_cast<const float4*>(x);
    } else {
      const int left = columns - column;
      words.x = x[0];
      if (left > 1) words.y = x[1];
      if (left > 2) words.z = x[2];
      if (left > 3) words.w = x[3];
    }
  }
  return words;
}
// --8<-- [end:load]

// alpha sum + beta c. For beta = 0, c is not read: whatever it holds, NaN
// included, is no operand.
// --8<-- [start:blend]
__device__ __forceinline__ float blend(float alpha, float sum, float beta,
                                       const float* c) {
  return beta == 0 ? alpha * sum : alpha * sum + beta * *c;
}
// --8<-- [end:blend]

// C = alpha sum + beta C for words column to column + 3 of a row, as far as C
// reaches.
// --8<-- [start:update]
__device__ __forceinline__ void update4(float* __restrict__ C, int row,
                                        int column, int rows, int columns,
                                        bool aligned, float alpha,
                                        const float* __restrict__ sum,
                                        float beta) {
  if (row >= rows) return;
  float* c = C + (size_t)row * columns + column;
  if (aligned) {
    if (column >= columns) return;
    float4 old = {0, 0, 0, 0};
    if (beta != 0) old = *reinterpret_cast<float4*>(c);
    *reinterpret_cast<float4*>(c) = make_float4(
        blend(alpha, sum[0], beta, &old.x), blend(alpha, sum[1], beta, &old.y),
        blend(alpha, sum[2], beta, &old.z), blend(alpha, sum[3], beta, &old.w));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (column + i < columns) c[i] = blend(alpha, sum[i], beta, c + i);
  }
}
// --8<-- [end:update]
