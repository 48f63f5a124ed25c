// The kernel of thread_tile.cu with other tiles, all with 512 threads: which of
// its savings pays?
//
//   matmul_tm1, _tm2, _tm4   1, 2 or 4 results per thread in the place of 8
//   matmul_tm1_bk64          1 result per thread, and tiles of depth 64
//   matmul_bk16              8 results per thread, and tiles of depth 16
#include "basics/ladder/thread_tile.cu"

// --8<-- [start:rows]
// 1, 2 and 4 results per thread. A thread meets as many barriers as with 8, so
// there are more barriers and more loads for each result.
extern "C" __global__ void __launch_bounds__(512, 2)
    matmul_tm1(const float* __restrict__ A, const float* __restrict__ B,
               float* __restrict__ C, int m, int n, int k) {
  multiply<8, 64, 8, 1>(A, B, C, m, n, k);
}
extern "C" __global__ void __launch_bounds__(512, 2)
    matmul_tm2(const float* __restrict__ A, const float* __restrict__ B,
               float* __restrict__ C, int m, int n, int k) {
  multiply<16, 64, 8, 2>(A, B, C, m, n, k);
}
extern "C" __global__ void __launch_bounds__(512, 2)
    matmul_tm4(const float* __restrict__ A, const float* __restrict__ B,
               float* __restrict__ C, int m, int n, int k) {
  multiply<32, 64, 8, 4>(A, B, C, m, n, k);
}
// --8<-- [end:rows]

// One result per thread, in tiles so deep that there are as many barriers for
// each result as with 8.
// --8<-- [start:deep]
extern "C" __global__ void __launch_bounds__(512, 2)
    matmul_tm1_bk64(const float* __restrict__ A, const float* __restrict__ B,
                    float* __restrict__ C, int m, int n, int k) {
  multiply<8, 64, 64, 1>(A, B, C, m, n, k);
}
// --8<-- [end:deep]

// --8<-- [start:depth]
// Tiles twice as deep: as many words for each result, and half of the barriers.
extern "C" __global__ void __launch_bounds__(512, 2)
    matmul_bk16(const float* __restrict__ A, const float* __restrict__ B,
                float* __restrict__ C, int m, int n, int k) {
  multiply<64, 64, 16, 8>(A, B, C, m, n, k);
}
// --8<-- [end:depth]
