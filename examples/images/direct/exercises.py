# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Holes in the window", zh: "有洞的窗口"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             `filter_image` applies one filter to one image of one channel, with
#             strides and padding. Complete it: neighboring words of the window
#             lie `dilation_y` rows and `dilation_x` columns apart in the image.
#             Blocks have 256 threads, one for each result; outside of the image
#             there are zeros.
#           zh: >-
#             `filter_image` 把一个滤波器用于一幅单通道图像，支持步长和填充。请补全它：窗口里
#             相邻的字在图像里相隔 `dilation_y` 行、`dilation_x`
#             列。每个线程块 256 个线程，每个线程一个结果；图像之外为零。
#         fails: "are wrong"
#       2:
#         title: {en: "A pitch without conflicts", zh: "没有冲突的行步长"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             The lanes of a warp stand `wide` across and 32 / `wide` down, and
#             those below each other read `down` rows of a tile apart. Write
#             `pitch`: the smallest number of words from one row of the tile to
#             the next, `least` at least, with which no two lanes meet in a bank.
#           zh: >-
#             一个线程束的 lane 横排 `wide` 个，竖排 32 / `wide` 个，上下相邻的 lane
#             读取分块里相隔 `down` 行的字。写 `pitch`：分块相邻两行之间最少隔多少个字（不少于
#             `least`），才能使任何两个 lane 不落在同一个存储体。
#         fails: "are wrong"
#       3:
#         title: {en: "A blur in two passes", zh: "两遍完成的模糊"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             A Gaussian of 5 x 5 is a column of 5 weights times a row of 5. So
#             the blur can be done along rows first, then along columns, with 5
#             products each in place of 25. Write `blur` for both: `step_y`,
#             `step_x` say where the next word of the window lies, (0, 1) or
#             (1, 0). The weights stand in constant memory. Blocks have 32 x 8
#             threads, one for each pixel; outside of the image there are zeros.
#           zh: >-
#             5 x 5 的高斯窗口是 5 个权重的一列乘以 5 个权重的一行。因此可以先沿行模糊，再沿列
#             模糊，每遍 5 次乘法，代替 25 次。写 `blur`，两遍都用它：`step_y` 和
#             `step_x` 表示窗口的下一个字在哪里，即 (0, 1) 或 (1, 0)。权重放在常量内存里。
#             每个线程块 32 x 8 个线程，每个线程一个像素；图像之外为零。
#         fails: "never written"
# ---

# %% stub-1
filter_image = ct.Kernel(
    """
__global__ void filter_image(const float* image, const float* filter,
                             float* out, int high, int wide, int rows,
                             int columns, int out_high, int out_wide,
                             int stride, int pad, int dilation_y,
                             int dilation_x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= out_high * out_wide) return;
  float sum = 0;
  for (int r = 0; r < rows; ++r) {
    for (int q = 0; q < columns; ++q) {
      const int y = i / out_wide * stride - pad + r;  // yours: dilation
      const int x = i % out_wide * stride - pad + q;
      if (y >= 0 && y < high && x >= 0 && x < wide)
        sum += image[y * wide + x] * filter[r * columns + q];
    }
  }
  out[i] = sum;
}
""",
    "filter_image",
)


# %% stub-2
def pitch(least, wide, down):
    return least  # yours: a bank has every 32nd word


# %% stub-3
blur = ct.Kernel(
    """
__constant__ float weights[5] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};

extern "C" __global__ void blur(const float* in, float* out, int high, int wide,
                                int step_y, int step_x) {
  const int x = blockIdx.x * 32 + threadIdx.x;
  const int y = blockIdx.y * 8 + threadIdx.y;
  // yours: five words, the middle one is (y, x)
}
""",
    "blur",
)
