# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "A chessboard", zh: "国际象棋棋盘"}
#         level: warm-up
#         minutes: 5
#         task:
#           en: >-
#             Complete the kernel `chessboard`: one thread for each pixel. A square of the board is 8 pixels wide and 8
#             high. The pixel in column x and row y becomes 220 if x / 8 + y / 8 is even, and 60 if it is odd. The check
#             tries several sizes, and writes `chessboard.bmp`.
#           zh: >-
#             补全 kernel `chessboard`，每个像素一个线程。棋盘的每一格宽 8 个像素，高 8 个像素。x 列 y 行的像素，
#             x / 8 + y / 8 是偶数就写 220，是奇数就写 60。检查程序会试几种大小，并写出 `chessboard.bmp`。
#         fails: "never written"
#       2:
#         title: {en: "A Julia set", zh: "朱利亚集合"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Complete the kernel `julia`. It takes the same steps as `mandelbrot`, but `a` and `b` are the same for all
#             pixels, and come as arguments. The place of the pixel is where `u` and `v` begin: u = 3.2f * (x - width / 2)
#             / width and v = 3.2f * (y - height / 2) / width. The check compares your picture with NumPy's, prints both
#             times, and writes `julia.bmp`.
#           zh: >-
#             补全 kernel `julia`。每一步与 `mandelbrot` 相同，但所有像素的 `a` 和 `b` 都一样，由参数传入；像素的位置是
#             `u` 和 `v` 的初值：u = 3.2f * (x - width / 2) / width，v = 3.2f * (y - height / 2) / width。检查程序把你的图
#             与 NumPy 画的比较，打印两者的用时，并写出 `julia.bmp`。
#         fails: "are wrong"
#       3:
#         title: {en: "Turn a picture", zh: "把图转过来"}
#         level: medium
#         minutes: 15
#         task:
#           en: >-
#             Complete the kernel `turn`: it turns a picture by a quarter, clockwise, with one thread for each pixel. The
#             picture `in` has `width` columns and `height` rows, so `out` has `height` columns and `width` rows. The
#             first row of `in` becomes the last column of `out`.
#           zh: >-
#             补全 kernel `turn`：把一幅图顺时针转四分之一圈，每个像素一个线程。输入 `in` 有 `width` 列、`height` 行，所以输出
#             `out` 有 `height` 列、`width` 行。`in` 的第一行变成 `out` 的最后一列。
#         fails: "never written"
# ---
# %% stub-1
module = SourceModule("""
__global__ void chessboard(unsigned char *image, int width, int height) {
  // yours
}
""")
chessboard = module.get_function("chessboard")

# %% stub-2
module = SourceModule("""
__global__ void julia(unsigned char *image, int width, int height, int steps,
                      float a, float b) {
  // yours
}
""")
julia = module.get_function("julia")

# %% stub-3
module = SourceModule("""
__global__ void turn(const unsigned char *in, unsigned char *out, int width,
                     int height) {
  // yours
}
""")
turn = module.get_function("turn")
