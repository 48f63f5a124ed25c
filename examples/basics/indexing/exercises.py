# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Cut out a rectangle", zh: "裁出一个矩形"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Write `crop`: `in` is an image with `columns` columns, `out` has the
#             shape (height, width), and `out[r][c] = in[top + r][left + c]`. The
#             two images have rows of different lengths. The launch has two
#             dimensions, x across and y down, with one thread per element of
#             `out`. The check compares several rectangles with NumPy.
#           zh: >-
#             写 `crop`：`in` 是一幅有 `columns` 列的图像，`out` 的形状是
#             (height, width)，要求 `out[r][c] = in[top + r][left + c]`。注意两幅图像
#             的行长不同。启动是二维的，x 向右，y 向下，`out` 的每个元素归一个线程。
#             检查程序用几个矩形与 NumPy 的结果比较。
#         fails: "never written"
#       2:
#         title: {en: "From a number to three indices", zh: "由编号求三个下标"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Write `permute`: `in` has the shape (Z, Y, X), `out` the shape
#             (X, Z, Y), and `out[x][z][y] = in[z][y][x]`. The launch has one
#             dimension and one thread per element, so each thread must find its z,
#             y and x from its number. Which of them is the remainder of the first
#             division?
#           zh: >-
#             写 `permute`：`in` 的形状是 (Z, Y, X)，`out` 的形状是 (X, Z, Y)，要求
#             `out[x][z][y] = in[z][y][x]`。启动是一维的，每个元素一个线程，所以每个
#             线程要由自己的编号求出 z、y、x。第一次除法的余数是其中哪一个？
#         fails: "never written"
#       3:
#         title: {en: "More elements than an int can count", zh: "元素多到 int 数不过来"}
#         level: medium
#         minutes: 15
#         task:
#           en: >-
#             Write `invert`, which computes `out[i] = 255 - in[i]` for an array of
#             2147483655 bytes, 7 more than 2^31. The check looks at the first, the
#             middle and the last 2000 bytes. It needs 4.3 GB of GPU memory. How
#             many blocks of 256 threads are that, and is such a grid allowed?
#           zh: >-
#             写 `invert`：数组有 2147483655 字节，比 2^31 多 7，要求
#             `out[i] = 255 - in[i]`。检查程序只看最前面、中间和最后面各 2000 字节，需要
#             4.3 GB 显存。每块 256 个线程，一共要多少个线程块？这样的网格允许吗？
#         fails: "never written"
# ---

# %% stub-1
source = """
__global__ void crop(const float *in, float *out, int columns,
                     int top, int left, int height, int width) {
  // yours: the row and the column of this thread, the guard, one copy
}
"""
crop = ct.Kernel(source, "crop")

# %% stub-2
source = """
__global__ void permute(const float *in, float *out, int Z, int Y, int X) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)Z * Y * X) return;
  // yours: z, y and x from i, then one copy
}
"""
permute = ct.Kernel(source, "permute")

# %% stub-3
source = """
__global__ void invert(const unsigned char *in, unsigned char *out,
                       long long n) {
  // yours
}
"""
invert = ct.Kernel(source, "invert")
