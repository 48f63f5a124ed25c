# ---
# jupyter:
#   cudatut:
#     requires: sm_90
#     exercises:
#       1:
#         title: {en: "Swizzled boxes", zh: "盒子里的重排"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             With `swizzle=128` the TMA rearranges pieces of 16 bytes within rows of 128 bytes. `found` holds a box of
#             8 x 32 words as it lies in shared memory. Find the rule in it, and write it as `place(row, column)`: the
#             word, 0 to 255, that holds this element. What is such an order good for?
#           zh: >-
#             加上 `swizzle=128`，TMA 会在 128 字节的行内重排 16 字节的小段。`found` 是一个 8 × 32 个元素的盒子在共享内存里
#             的排列。从中找出规律，写成 `place(row, column)`：返回这个元素放在第几个字（0 到 255）。这样排列有什么用？
#         fails: "swizzle=128"
#       2:
#         title: {en: "A stencil without edges", zh: "不判断边缘的模板计算"}
#         level: medium
#         minutes: 30
#         task:
#           en: >-
#             Write the kernel `smooth`: each element of `out` is the mean of the same element of `X` and its four
#             neighbors, with zeros beyond the edges. Test for the edge only when writing, not when reading. `BOX` is the
#             box, rows x columns, that a block needs for its 32 x 32 results. A row of a box must be a multiple of 16
#             bytes.
#           zh: >-
#             写出 kernel `smooth`：`out` 的每个元素是 `X` 同一位置的元素与上下左右四个元素的平均，边缘之外按零算。只在写的
#             时候判断边缘，读的时候不判断。`BOX` 是一个线程块算 32 × 32 个结果所需的盒子，先行后列。盒子的一行必须是 16
#             字节的整数倍。
#         fails: "never written"
# ---
# %% stub-1
def place(row, column):
    """Word of shared memory that holds element (row, column)."""
    return 32 * row + column  # yours: this is the order without a swizzle


# %% stub-2
BOX = HIGH, WIDE  # yours: without neighbors this is too small
SMOOTH = """
// Barrier, init, arrive_and_expect, copy_box, wait:
#include "gemm/ladder/tma.cu"

template <int HIGH, int WIDE>
__global__ void smooth(const __grid_constant__ CUtensorMap X, float* out,
                       int rows, int columns) {
  // yours: thread (0, 0) asks for the box, all threads wait for it
}
"""
