# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Another permutation", zh: "另一种重排"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             A tile has 32 rows of 32 words. `place` is an expression in C that says
#             at which word of row `y` element `x` stands. Find one that uses no
#             exclusive or: each row is a permutation, and a row as well as a column
#             of the tile lies in 32 banks. The check counts the banks of all
#             columns, and turns matrices.
#           zh: >-
#             一个分块有 32 行，每行 32 个字。`place` 是一个 C 表达式，给出元素 `x` 放在第 `y`
#             行的哪个字。请找一种不用异或的写法：每行都是一个排列，而且分块的一行和一列都分布在
#             32 个存储体里。检查程序数出每一列用到的存储体，再转置几个矩阵。
#         fails: "columns"
#       2:
#         title: {en: "Pixels into planes", zh: "把像素拆成平面"}
#         level: medium
#         minutes: 30
#         task:
#           en: >-
#             A picture has `n` pixels of three floats, side by side. `planes`
#             makes three planes of it: out[c * n + i] = in[3 * i + c]. It is
#             launched with blocks of 256 threads, one for 256 pixels. Neighboring
#             threads shall read and write neighboring words. Do the accesses to
#             your tile in shared memory have conflicts, and why?
#           zh: >-
#             一幅图像有 `n` 个像素，每个像素的三个 float 紧挨在一起。`planes` 把它拆成三个
#             平面：out[c * n + i] = in[3 * i + c]。每个线程块 256 个线程，负责 256 个像素。
#             读和写都要让相邻的线程访问相邻的字。对共享内存分块的访问会不会有冲突？为什么？
#         fails: "never written"
#       3:
#         title: {en: "Axes of a tensor", zh: "交换张量的轴"}
#         level: hard
#         minutes: 45
#         task:
#           en: >-
#             `exchange` takes x of shape (a, b, c) and writes out of shape
#             (b, a, c): heads and positions of attention change places in this
#             way. c is a multiple of 4, and nothing else is known. Choose grid and
#             block in `launch_exchange`. Which of the tricks of this chapter does
#             it need? Predict its rate for c = 64 beside the copy.
#           zh: >-
#             `exchange` 把形状为 (a, b, c) 的 x 写成形状为 (b, a, c) 的 out：注意力的头与
#             位置就是这样交换的。c 是 4 的倍数，此外没有任何限制。在 `launch_exchange` 里选择
#             网格和线程块。它需要本章的哪些技巧？先预测：c = 64 时，与复制相比速率如何。
#         fails: "never written"
# ---

# %% stub-1
place = "x"  # yours: an expression in C of y and x

# %% stub-2
planes = ct.Kernel(
    """
extern "C" __global__ void planes(const float* in, float* out, int n) {
  // yours
}
""",
    "planes",
)

# %% stub-3
exchange = ct.Kernel(
    """
extern "C" __global__ void exchange(const float4* in, float4* out, int a, int b,
                                    int c) {
  // yours: c counts vectors of four floats
}
""",
    "exchange",
)


def launch_exchange(x, out, a, b, c):
    exchange(x, out, a, b, c // 4, grid=1, block=32)  # yours
