# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Four multiplications for six", zh: "四次乘法抵六次"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             A filter of three weights slides over a row of n + 2 words:
#             `out[i] = in[i] * w[0] + in[i + 1] * w[1] + in[i + 2] * w[2]`.
#             Write `pairs`, of which each thread makes two neighboring results
#             by F(2, 3). The four transformed weights are in `u`, made on the
#             host: `w[0]`, `(w[0] + w[1] + w[2]) / 2`,
#             `(w[0] - w[1] + w[2]) / 2` and `w[2]`. n may be odd. Blocks have
#             256 threads.
#           zh: >-
#             三个权重的滤波器在一行 n + 2 个字上滑动：
#             `out[i] = in[i] * w[0] + in[i + 1] * w[1] + in[i + 2] * w[2]`。
#             写 `pairs`，每个线程用 F(2, 3) 算出相邻的两个结果。四个变换后的权重在
#             `u` 里，已由主机算好：`w[0]`、`(w[0] + w[1] + w[2]) / 2`、
#             `(w[0] - w[1] + w[2]) / 2` 和 `w[2]`。n 可能是奇数。每个线程块 256
#             个线程。
#         fails: "never written"
#       2:
#         title: {en: "With bias and ReLU", zh: "加上偏置和 ReLU"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             A layer adds a number to each filter's results and makes what is
#             negative 0. Write `results_relu`, the last step of F(2 x 2), which
#             does this on the way: `m` is [16][filters][tiles], each image has
#             `down` x `across` tiles of 2 x 2, `out` is [image][filter][2 * down]
#             [2 * across]. Nothing is cut at the edges. Blocks have 128 threads,
#             one for each tile; blockIdx.y is the filter.
#           zh: >-
#             一层网络给每个滤波器的结果加上一个数，再把负数变成 0。写
#             `results_relu`，也就是 F(2 x 2) 的最后一步，顺便完成这件事：`m` 的形状是
#             [16][filters][tiles]，每张图像有 `down` x `across` 个 2 x 2
#             的分块，`out` 的形状是 [image][filter][2 * down]
#             [2 * across]。边缘处没有切掉的部分。每个线程块 128
#             个线程，一个线程负责一个分块；blockIdx.y 是滤波器。
#         fails: "never written"
#       3:
#         title: {en: "Better points", zh: "更好的点"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             F(4, 3) evaluates polynomials at five points and at infinity.
#             With 0, 1, -1, 2 and -2 the constants are simple. Other points give
#             other matrices, and other errors. Write `points`, which returns
#             five different fractions. The check computes a convolution by
#             F(4 x 4) in fp32, in NumPy, and wants a typical error below
#             60/100 of that of the simple points.
#           zh: >-
#             F(4, 3) 在五个点和无穷远处求多项式的值。取 0、1、-1、2、-2
#             时，常数很简单。换别的点，矩阵不同，误差也不同。写
#             `points`，返回五个互不相同的分数。检查程序用 NumPy 以 fp32 做 F(4 x 4)
#             卷积，要求典型误差低于简单点的 60/100。
#         fails: "typical error"
# ---

# %% stub-1
pairs = ct.Kernel(
    """
__global__ void pairs(const float* in, const float* u, float* out, int n) {
  const int i = 2 * (blockIdx.x * 256 + threadIdx.x);
  // yours: results i and i + 1, by four multiplications
}
""",
    "pairs",
)

# %% stub-2
results_relu = ct.Kernel(
    """
__global__ void results_relu(const float* m, const float* bias, float* out,
                             int tiles, int down, int across) {
  const int tile = blockIdx.x * 128 + threadIdx.x;
  const int filter = blockIdx.y, filters = gridDim.y;
  // yours: columns, then rows; then bias and ReLU
}
""",
    "results_relu",
)


# %% stub-3
def points():
    return [0, 1, -1, 2, -2]  # yours: five fractions, such as Fraction(1, 2)
