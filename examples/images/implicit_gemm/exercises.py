# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Where a word comes from", zh: "每个字来自哪里"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `source_of`. For row k of B and pixel j, a thread stores
#             the index of the word in the images, [image][channel][height]
#             [width], or -1 where the window leaves the image. Windows are 3 x
#             3. Blocks have 128 threads.
#           zh: >-
#             写 `source_of`：对于因子 B 的第 k 行和像素 j，线程存下这个字在图像数组
#             [image][channel][height][width] 里的下标；窗口落在图像外时存 -1。
#             窗口为 3 x 3，每个线程块 128 个线程。
#         fails: "never written"
#       2:
#         title: {en: "A table for the channel last", zh: "通道在最后时的表"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             The kernel `by_table` has a table as `offsets` does: for each row
#             of B the offset from the window's first word, and a bit for the
#             place in the window. Here images lie as [row][column][channel],
#             and so do the rows of B. Write `table`, an int32 array of (rows of
#             B, 2).
#           zh: >-
#             kernel `by_table` 像 `offsets` 一样查表：B
#             的每一行有相对窗口首字的偏移，以及窗口内位置对应的位。这里图像和 B
#             的行都按 [row][column][channel] 排列。写 `table`，返回形状为 (B 的行数,
#             2) 的 int32 数组。
#         fails: "are wrong"
#       3:
#         title: {en: "The way back", zh: "反向传播"}
#         level: hard
#         minutes: 30
#         task:
#           en: >-
#             Training needs the gradient of the images: for each word the sum
#             over all results that used it, of the result's gradient times the
#             weight. Write `backward`: a thread has one word of `gradient`,
#             [image][channel][height][width]. Which result, if any, used it
#             with the weight in row r and column q? The stride decides.
#           zh: >-
#             训练需要图像的梯度：图像的每个字，要对所有用到它的结果求和，各项是结果的梯度乘以权重。
#             写 `backward`：每个线程负责 `gradient`（布局
#             [image][channel][height][width]）的一个字。哪个结果用第 r 行第 q 列的权重乘过这个字？也可能没有，这由步长决定。
#         fails: "never written"
# ---

# %% stub-1
source_of = ct.Kernel(
    """
__global__ void source_of(int* out, int images, int channels, int height,
                          int width, int out_height, int out_width,
                          int stride, int pad) {
  const int pixels = images * out_height * out_width;
  const int j = blockIdx.x * 128 + threadIdx.x, k = blockIdx.y;
  // yours: out[k * pixels + j]
}
""",
    "source_of",
)


# %% stub-2
def table(channels, width, window):
    """Offset and bit of each row of B."""
    rows, columns = window
    found = np.zeros((rows * columns * channels, 2), "int32")
    return found  # yours


# %% stub-3
backward = ct.Kernel(
    """
__global__ void backward(const float* results, const float* weights,
                         float* gradient, int images, int channels, int height,
                         int width, int filters, int window, int out_height,
                         int out_width, int stride, int pad) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= images * channels * height * width) return;
  // yours: results [image][filter][out_height][out_width] holds gradients,
  // weights is [filter][channel][window][window]
}
""",
    "backward",
)
