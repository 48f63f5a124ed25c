# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "Whose bias is it", zh: "该加哪个偏置"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             After a wgmma, 128 threads hold a tile of 64 rows. Thread t has `size` sums of it. Write
#             `places(t, size)`: the rows and the columns of sum[0], sum[1], ... as two lists. The chapter on wgmma
#             says who holds what; sums that need the same bias have the same column. The check wants each sum where the
#             instruction puts it.
#           zh: >-
#             一次 wgmma 之后，128 个线程持有一个 64 行的分块，线程 t 有其中 `size` 个累加值。写出
#             `places(t, size)`：用两个列表返回 sum[0]、sum[1]……所在的行和列。哪个线程持有哪些值，见 wgmma 一章；
#             列号相同的累加值，加的是同一个偏置。检查程序会核对每个累加值的位置是否与指令规定的一致。
#         fails: "row and column"
#       2:
#         title: {en: "A gate as an epilogue", zh: "把门控写成尾声运算"}
#         level: medium
#         minutes: 30
#         task:
#           en: >-
#             Many language models multiply two products, one of them after SiLU, x / (1 + exp(-x)). If the columns of
#             both weights alternate, a thread has both numbers of a pair: gate in column 2j, value in column 2j + 1.
#             Write `gate_pairs`: from C (m x 2n, bf16) to out (m x n, bf16), out[i][j] = SiLU(gate) * value, computed
#             in fp32 and rounded once. A thread has one pair. The check compares with
#             float64.
#           zh: >-
#             许多语言模型把两个乘积逐元素相乘，其中一个先过 SiLU，即 x / (1 + exp(-x))。如果两个权重的列交错存放，
#             一对数就在同一个线程里：门控值在第 2j 列，值在第 2j + 1 列。编写 `gate_pairs`：由 C（m x 2n，bf16）
#             算出 out（m x n，bf16），out[i][j] = SiLU(门控) * 值，用 fp32 计算，只舍入一次。一个线程负责一对。
#             检查程序把结果与 float64 的结果比较。
#         fails: "are wrong"
# ---
# %% stub-1
def places(t, size):
    """Rows and columns of a thread's sums in a tile of 64 rows."""
    rows = [t // 2 for i in range(size)]  # yours: not who holds what
    columns = [t % 2 * size + i for i in range(size)]
    return rows, columns


# %% stub-2
SOURCE = """
#include <cuda_bf16.h>

extern "C" __global__ void gate_pairs(const __nv_bfloat162 *C,
                                      __nv_bfloat16 *out, int pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  const float2 pair = __bfloat1622float2(C[i]);
  out[i] = __float2bfloat16_rn(pair.x * pair.y);  // yours: SiLU is missing
}
"""
