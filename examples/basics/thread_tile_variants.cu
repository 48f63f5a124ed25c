// The kernel of thread_tile.cu with other tiles, all with 512 threads: which of its savings pays?
#include "thread_tile.cu"

// --8<-- [start:rows]
// Results per thread 1, 2 and 4: as many barriers as with 8, more loads per result.
extern "C" __global__ void __launch_bounds__(512)
    matmul_tm1(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
               int m, int n, int k) {
  multiply<8, 64, 8, 1>(A, B, C, m, n, k);
}
extern "C" __global__ void __launch_bounds__(512)
    matmul_tm2(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
               int m, int n, int k) {
  multiply<16, 64, 8, 2>(A, B, C, m, n, k);
}
extern "C" __global__ void __launch_bounds__(512)
    matmul_tm4(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
               int m, int n, int k) {
  multiply<32, 64, 8, 4>(A, B, C, m, n, k);
}
// --8<-- [end:rows]

// --8<-- [start:depth]
// Tiles two and four times as deep: as many loads per result, a half and a quarter of the barriers.
extern "C" __global__ void __launch_bounds__(512)
    matmul_bk16(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                int m, int n, int k) {
  multiply<64, 64, 16, 8>(A, B, C, m, n, k);
}
extern "C" __global__ void __launch_bounds__(512)
    matmul_bk32(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                int m, int n, int k) {
  multiply<64, 64, 32, 8>(A, B, C, m, n, k);
}
// --8<-- [end:depth]
