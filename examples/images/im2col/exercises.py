# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "As many images as fit", zh: "装得下几幅图像"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Write `fitting(shape, room)`: how many images a matrix of at most
#             `room` bytes can have; one at least, and no more than the shape
#             has. `shape.window`, `shape.out`, `shape.channels` and
#             `shape.images` say all that you need. A row of the matrix is
#             rounded up to a multiple of 4 words.
#           zh: >-
#             写 `fitting(shape, room)`：不超过 `room` 字节的矩阵能放下几幅图像；至少
#             一幅，至多是 shape 里的图像数。需要的数都在 `shape.window`、
#             `shape.out`、`shape.channels` 和 `shape.images`
#             里。矩阵的每一行补齐到 4 个字的倍数。
#         fails: "are wrong"
#       2:
#         title: {en: "Channels last", zh: "通道在最后"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Images can lie as [image][row][column][channel]. Write `im2row`:
#             a row of the matrix for each window, (image, row, column of the
#             result), and in it the words in the order (row, column of the
#             window, channel). Window, stride and padding are the same in both
#             directions. Blocks have 256 threads, one for each word of the
#             matrix. Which neighbors in the matrix are neighbors in the image?
#           zh: >-
#             图像也可以按 [图像][行][列][通道] 存放。写 `im2row`：矩阵每行是一个窗口
#             （图像，结果的行、列），行内的字按（窗口的行、列，通道）排列。窗口、步长和填充在
#             两个方向上相同。每个线程块 256 个线程，每个线程负责矩阵的一个字。矩阵里哪些相邻
#             的字在图像里也相邻？
#         fails: "never written"
#       3:
#         title: {en: "Back to the image", zh: "回到图像"}
#         level: hard
#         minutes: 30
#         task:
#           en: >-
#             Training needs the way back, *col2im*: each word of an image gets
#             the sum of all words of the matrix that came from it. Write it
#             with one thread for each word of the image, which looks for these
#             places; then nobody has to add atomically. One image, one
#             channel; the matrix has a row for each word of the window and a
#             column for each place of the result. Blocks have 256 threads.
#           zh: >-
#             训练时要反过来做，即 *col2im*：图像的每个字等于矩阵中所有由它而来的字之和。每个
#             线程负责图像的一个字，由它去找这些位置，这样就不必用原子操作相加。一幅图像，一个
#             通道；矩阵的一行对应窗口的一个字，一列对应结果的一个位置。每个线程块 256 个线程。
#         fails: "never written"
# ---


# %% stub-1
def fitting(shape, room):
    return shape.images  # yours: the bytes of a column of the matrix


# %% stub-2
im2row = ct.Kernel(
    """
__global__ void im2row(const float* in, float* matrix, int images, int high,
                       int wide, int channels, int window, int stride, int pad,
                       int out_high, int out_wide) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  // yours: which channel, which place in the window, which window?
}
""",
    "im2row",
)

# %% stub-3
col2im = ct.Kernel(
    """
__global__ void col2im(const float* matrix, float* image, int high, int wide,
                       int window, int stride, int pad, int out_high,
                       int out_wide) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  // yours: for each word of the window, is there a place that read this pixel?
}
""",
    "col2im",
)
