# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Blocks of any shape", zh: "任意形状的线程块"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `launch_shape(m, n, edge)`: the grid and the block that cover C
#             (m rows, n columns) with blocks of edge x edge threads. The check
#             multiplies ragged matrices with blocks of 2 x 2 to 32 x 32, then times
#             them at 1024. Predict how many times as long 2 x 2 takes as 16 x 16,
#             from the number of lanes that a warp of a 2 x 2 block has in use.
#           zh: >-
#             写 `launch_shape(m, n, edge)`：返回网格和线程块，用 edge × edge 的线程块
#             盖住 m 行 n 列的 C。检查程序先用 2 × 2 到 32 × 32 的线程块计算几组尺寸不
#             规整的矩阵，再在边长 1024 时计时。2 × 2 的线程块里，一个线程束用到几个 lane？
#             由此预测，2 × 2 的用时是 16 × 16 的几倍。
#         fails: "never written"
#       2:
#         title: {en: "alpha and beta", zh: "alpha 与 beta"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Libraries compute C = alpha * A B + beta * C. Write `gemm` with these
#             two parameters. With beta = 0, the old C may hold anything, NaN for
#             example, and must not come into the result. Before you run it: how many
#             bytes must it move for 4096, with beta = 1 and with beta = 0?
#           zh: >-
#             各种库计算的是 C = alpha * A B + beta * C。请写带这两个参数的 `gemm`。
#             beta = 0 时，旧的 C 里可以是任何东西，例如 NaN，不许混进结果。运行之前
#             先想：边长 4096，beta = 1 和 beta = 0 时各要读写多少字节？
#         fails: "never written"
# ---


# %% stub-1
def launch_shape(m, n, edge):
    """Grid and block that cover C (m rows, n columns), x along the columns."""
    return (1, 1), (edge, edge)  # yours: enough blocks in x and in y


# %% stub-2
source = """
__global__ void gemm(const float *A, const float *B, float *C,
                     int m, int n, int k, float alpha, float beta) {
  // yours
}
"""
gemm = ct.Kernel(source, "gemm")
