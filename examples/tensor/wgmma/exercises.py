# ---
# jupyter:
#   cudatut:
#     requires: sm_90a
#     exercises:
#       1:
#         title: {en: "Where wgmma looks", zh: "wgmma 从哪里取元素"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             `memory` holds, byte by byte, a box of 64 rows and 64 columns of bf16 as the TMA has written it with
#             `swizzle=128`. Write `byte_of(row, column)`: the byte at which wgmma finds this element, for a factor whose lines
#             run along the depth.
#           zh: >-
#             `memory` 按字节保存着一个 64 行、64 列的 bf16 盒子，是 TMA 用 `swizzle=128` 写入的。操作数的行沿深度方向。
#             请编写 `byte_of(row, column)`，返回 wgmma 从第几个字节（从 0 数起）开始读取这个元素。
#         fails: "are wrong"
#       2:
#         title: {en: "Both factors along the depth", zh: "两个操作数都沿深度方向"}
#         level: medium
#         minutes: 40
#         task:
#           en: >-
#             Weights of a network often lie as n x k, each column of the product a row in memory: C = A W^T. Change the
#             given kernel so that it takes W as it lies. A box of W then has 64 rows, 64 columns of C. k and n are
#             multiples of 8.
#           zh: >-
#             神经网络的权重常常按 n × k 存放，也就是说，结果的一列对应内存里的一行：C = A W^T。请修改题目的 kernel，
#             让它直接使用这样存放的 W。这时 W 的一个盒子有 64 行，对应 C 的 64 列。k 和 n 都是 8 的倍数。
#         fails: "are wrong"
# ---
# %% stub-1
def byte_of(row, column):
    """Byte of `memory` at which element (row, column) begins."""
    return 128 * row + 2 * column  # yours: this is the order without a swizzle


# %% stub-2
SOURCE = """
#include "tensor/ladder/products.cuh"
#include "ptx/tma.cuh"

extern "C" __global__ void __launch_bounds__(128)
    gemm_nt(const __grid_constant__ CUtensorMap A,
            const __grid_constant__ CUtensorMap W, __nv_bfloat16* C, int m,
            int n, int k) {
  __shared__ __align__(1024) unsigned char tile_a[BOX], tile_w[2 * BOX];
  __shared__ Barrier arrived;
  const int top = blockIdx.y * 64, left = blockIdx.x * 128;
  if (threadIdx.x == 0) {
    init(&arrived, 1);
    fence_init();
  }
  __syncthreads();
  float sum[64];
  for (int start = 0, parity = 0; start < k; start += BK, parity ^= 1) {
    if (threadIdx.x == 0) {
      arrive_and_expect(&arrived, 3 * BOX);
      copy_box(tile_a, A, top, start, &arrived);
      for (int box = 0; box < 2; ++box)  // yours: where does it begin?
        copy_box(tile_w + box * BOX, W, start, left + box * 64, &arrived);
    }
    wait(&arrived, parity);
    const Descriptor of_a(shared_address(tile_a));
    const Descriptor of_w(shared_address(tile_w), BOX);
    fence_sums();
    for (int i = 0; i < BK / 16; ++i)  // yours: how does W lie?
      wgmma<true, false>(sum, of_a.at(i * 32), of_w.at(i * 2048),
                         start + i > 0);
    close_products();
    wait_for_products<0>();
    __syncthreads();
  }
  store_sums(sum, C, top, left, m, n);
}
"""
