# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "Back to fp32", zh: "还原成 fp32"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write the kernel `dequantize`: a matrix of e4m3 codes and its scales, one for 128 numbers of a row, become
#             fp32. The scale of element (row, column) is at `scales[column / 128 * pitch + row]`. A block has a row; its
#             threads walk over the columns. The check compares with NumPy, also for widths that are no multiple of 128.
#           zh: >-
#             编写 kernel `dequantize`：用 e4m3 编码的矩阵和缩放系数（每行每 128 个数一个）还原出 fp32。元素
#             (row, column) 的系数在 `scales[column / 128 * pitch + row]`。一个线程块负责一行，块内的线程遍历各列。检查程序与
#             NumPy 的结果比较，宽度不一定是 128 的倍数。
#         fails: "are wrong"
#       2:
#         title: {en: "An adder in NumPy", zh: "用 NumPy 写一个加法器"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Write `add_up(numbers, bits)`: the sums along the last axis as an adder makes them that keeps `bits` bits
#             behind the leading one. All numbers are lined up with the largest: if that has 2^e <= |x| < 2^(e + 1), each
#             number is cut off, towards zero, to a multiple of 2^(e - bits). Then they are added without error. Where all
#             numbers are zero the sum is zero. The check computes the same with whole numbers.
#           zh: >-
#             写出 `add_up(numbers, bits)`：沿最后一维求和，模拟一个最高位之后只保留 `bits` 位的加法器。所有数都
#             与最大的数对齐：最大的数如果满足 2^e <= |x| < 2^(e + 1)，就把每个数都朝零截断成 2^(e - bits) 的倍数，
#             再无误差地相加。如果所有数都是零，结果就是零。检查程序用整数做同样的计算。
#         fails: "sums of the adder"
# ---
# %% stub-1
SOURCE = """
#include <cuda_fp8.h>

extern "C" __global__ void dequantize(const unsigned char *codes,
                                      const float *scales, float *out,
                                      int columns, int pitch) {
  const int row = blockIdx.x;
  for (int column = threadIdx.x; column < columns; column += blockDim.x) {
    const unsigned char code = codes[(size_t)row * columns + column];
    const __half value = __nv_cvt_fp8_to_halfraw(code, __NV_E4M3);
    // yours: the scale is missing
    out[(size_t)row * columns + column] = __half2float(value);
  }
}
"""


# %% stub-2
def add_up(numbers, bits):
    """Sums along the last axis, by an adder of this width; in float64."""
    return numbers.sum(axis=-1)  # yours: nothing is cut off here
