// C = A B of fp32 matrices on the tensor cores, in a type with fewer bits.
//
//   copy4          starts the copy of four numbers
//   split          numbers as sums of numbers of the type
//   multiply       products of such sums
//   typed_product  the kernel
//
// requires: sm_80
#include "types.cuh"

constexpr int BM = 128, BN = 128, BK = 16;  // a block's tile; depth of a step
constexpr int WM = 64, WN = 32;             // the part of each of its 8 warps

// Starts to copy four numbers of a row, from a column that is a multiple of 4;
// zeros stand beyond the matrix, which has rows x columns. If rows do not begin
// at multiples of 16 bytes, numbers are copied one by one.
__device__ __forceinline__ void copy4(float* to, const float* M, int rows,
                                      int columns, int row, int column) {
  const unsigned at = shared_address(to);
  const bool inside = row < rows && column < columns;
  const float* from = inside ? M + (size_t)row * columns + column : M;
  if (columns % 4 == 0) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at),
                 "l"(from), "r"(inside ? 16 : 0)
                 : "memory");
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const bool there = inside && column + i < columns;
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at + 4 * i),
        "l"(there ? from + i : M), "r"(there ? 4 : 0)
        : "memory");
  }
}

// --8<-- [start:split]
// Each of the numbers x becomes a sum of PARTS numbers of type T: each part
// takes what the parts before have left over. Subtractions are exact.
template <class T, int PARTS>
__device__ __forceinline__ void split(float (&x)[T::N],
                                      unsigned (&parts)[PARTS]) {
#pragma unroll
  for (int p = 0; p < PARTS; ++p) {
    parts[p] = T::round(x);
#pragma unroll
    for (int i = 0; i < T::N; ++i) x[i] -= T::value(parts[p], i);
  }
}

// d += a b, small products first; products of two small parts are left out.
template <class T, int PARTS>
__device__ __forceinline__ void multiply(float (&d)[4],
                                         const unsigned (&a)[PARTS][4],
                                         const unsigned (&b)[PARTS][2]) {
#pragma unroll
  for (int small = PARTS - 1; small >= 0; --small)
#pragma unroll
    for (int p = 0; p <= small; ++p) T::multiply(d, a[p], b[small - p]);
}
// --8<-- [end:split]

// A is m x k, B is k x n, C is m x n, row-major, any extents; k is at most
// 2^31 - BK. Grid: x over the columns, y over the rows. Block: 256 threads; if
// there are several parts, one block per SM leaves a thread the registers that
// they take.
//
//   T        the type of the factors: Tf32, Bf16 or Fp16 of types.cuh
//   PARTS    numbers of T whose sum stands for a factor: 1, 2 or 3. The product
//            of two factors is then 1, 3 or 6 products
//   OUTSIDE  whether each instruction begins with sums of zero, and fp32
//            additions of the thread add up its results
template <class T, int PARTS, bool OUTSIDE>
__global__ void __launch_bounds__(256, PARTS == 1 ? 2 : 1)
    typed_product(const float* __restrict__ A, const float* __restrict__ B,
                  float* __restrict__ C, int m, int n, int k) {
  // Rows are a little longer than the tiles, so that the lanes of a warp read
  // from 32 banks: 20 g + t and 8 t + g are different modulo 32.
  __shared__ __align__(16) float As[2][BM][BK + 4], Bs[2][BK][BN + 8];
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int g = lane / 4, t = lane % 4;
  const int top = blockIdx.y * BM, left = blockIdx.x * BN;
  const int y = warp / (BN / WN) * WM, x = warp % (BN / WN) * WN;
  const auto copy = [&](int stage, int start) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int ya = thread / 4 + i * 64, xa = thread % 4 * 4;
      const int yb = thread / 32 + i * 8, xb = thread % 32 * 4;
      copy4(&As[stage][ya][xa], A, m, k, top + ya, start + xa);
      copy4(&Bs[stage][yb][xb], B, k, n, start + yb, left + xb);
    }
    commit();
  };
  float sums[WM / 16][WN / 8][4] = {};
  int stage = 0;
  if (k > 0) copy(0, 0);
  for (int start = 0; start < k; start += BK, stage ^= 1) {
    wait_for_all_but<0>();
    __syncthreads();  // the tiles have come, and all have read those before
    if (start + BK < k) copy(stage ^ 1, start + BK);
    // The order in which the products of a step are added does not matter. So a
    // lane takes columns of A that suit the banks: t, t + 4, t + 8, t + 12, and
    // the same rows of B.
#pragma unroll
    for (int depth = 0; depth < BK; depth += 8 * T::N) {
      unsigned b[WN / 8][PARTS][2];
#pragma unroll
      for (int j = 0; j < WN / 8; ++j)
#pragma unroll
        for (int q = 0; q < 2; ++q) {
          float numbers[T::N];
          unsigned parts[PARTS];
#pragma unroll
          for (int e = 0; e < T::N; ++e)
            numbers[e] =
                Bs[stage][depth + t + 4 * (q * T::N + e)][x + j * 8 + g];
          split<T, PARTS>(numbers, parts);
#pragma unroll
          for (int p = 0; p < PARTS; ++p) b[j][p][q] = parts[p];
        }
#pragma unroll
      for (int i = 0; i < WM / 16; ++i) {
        unsigned a[PARTS][4];
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          float numbers[T::N];
          unsigned parts[PARTS];
#pragma unroll
          for (int e = 0; e < T::N; ++e)
            numbers[e] = As[stage][y + i * 16 + g + r % 2 * 8]
                           [depth + t + 4 * (r / 2 * T::N + e)];
          split<T, PARTS>(numbers, parts);
#pragma unroll
          for (int p = 0; p < PARTS; ++p) a[p][r] = parts[p];
        }
#pragma unroll
        for (int j = 0; j < WN / 8; ++j) {
          // --8<-- [start:outside]
          if (OUTSIDE) {
            float part[4] = {};
            multiply<T, PARTS>(part, a, b[j]);
            for (int e = 0; e < 4; ++e) sums[i][j][e] += part[e];
          } else {
            multiply<T, PARTS>(sums[i][j], a, b[j]);
          }
          // --8<-- [end:outside]
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < WM / 16; ++i)
#pragma unroll
    for (int j = 0; j < WN / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = top + y + i * 16 + g + e / 2 * 8;
        const int column = left + x + j * 8 + 2 * t + e % 2;
        if (row < m && column < n) C[(size_t)row * n + column] = sums[i][j][e];
      }
}

// Instances that are compiled by the tests:
// @instance typed_product<Tf32, 1, false>
// @instance typed_product<Tf32, 2, false>
// @instance typed_product<Tf32, 2, true>
// @instance typed_product<Bf16, 1, false>
// @instance typed_product<Bf16, 2, true>
// @instance typed_product<Bf16, 3, true>
// @instance typed_product<Fp16, 1, false>
