# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Where does it come from", zh: "从哪里来"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `place`, a warp of a gray image of `height` x `width` bytes,
#             with the nearest pixel. The output has `out_height` x `out_width`.
#             The six numbers `a` to `f` are the inverse map: output column x,
#             row y comes from column a x + b y + c and row d x + e y + f, both
#             rounded down after 0.5 is added. What comes from beyond the image
#             is 0. Blocks have 16 x 16 threads.
#           zh: >-
#             写 `place`：对 `height` x `width` 字节的灰度图做变换，取最近的像素。输出为
#             `out_height` x `out_width`。六个数 `a` 到 `f` 是逆映射：输出的第 x
#             列、第 y 行来自第 a x + b y + c 列、第 d x + e y + f 行，两者都加 0.5
#             后向下取整。来自图像之外的像素为 0。每个线程块 16 x 16 个线程。
#         fails: "never written"
#       2:
#         title: {en: "A border of your own", zh: "自己的边界"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Some libraries mirror an image so that its edge stands twice:
#             dcba|abcd|dcba. OpenCV calls it `BORDER_REFLECT`. Write `inside`
#             for it: i is any index, n at least 1. The kernel around it is
#             given; the check goes several images far to both sides, and has
#             images of a single pixel.
#           zh: >-
#             有的库翻转图像时，边缘的像素出现两次：dcba|abcd|dcba，OpenCV 称之为
#             `BORDER_REFLECT`。为它写 `inside`：i 是任意下标，n 至少为 1。外面的 kernel
#             已经给出；检查程序向两侧走出好几幅图的距离，也包含只有一个像素的图。
#         fails: "are wrong"
#       3:
#         title: {en: "A letterbox is one matrix", zh: "letterbox 就是一个矩阵"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Write `letterbox(height, width, side)`: the 2 x 3 matrix that makes
#             an image as large as fits into a square of `side` pixels, without
#             changing its shape, and puts it into the middle. `placed` gives its
#             new height and width, and the first row and column. Centers of
#             pixels are at integers, so edges are at halves: the edge at -0.5
#             has to come to lie at left - 0.5. The check compares the warp with
#             a resize, away from the rim.
#           zh: >-
#             写 `letterbox(height, width, side)`，返回一个 2 x 3 矩阵：在不改变长宽比的
#             前提下把图像放到 `side` 像素的正方形所能容纳的最大尺寸，并放在正中。
#             `placed` 给出新的高和宽，以及起始行和起始列。像素中心位于整数，所以边缘位于
#             半整数：-0.5 处的边缘要落到 left - 0.5。检查程序把变换的结果与缩放的结果
#             相比，四周的一圈除外。
#         fails: "are wrong"
# ---

# %% stub-1
place = ct.Kernel(
    """
__global__ void place(unsigned char* out, const unsigned char* image,
                      float a, float b, float c, float d, float e, float f,
                      int out_height, int out_width, int height, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= out_width || y >= out_height) return;
  // yours: which pixel of the image comes here?
}
""",
    "place",
)

# %% stub-2
around = ct.Kernel(
    """
__device__ int inside(int i, int n) {
  return i < 0 ? 0 : i < n ? i : n - 1;  // yours: this repeats the edge
}

__global__ void around(int* out, int from, int count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = inside(from + i, n);
}
""",
    "around",
)


# %% stub-3
def letterbox(height, width, side):
    # yours: placed(height, width, side, side) says how large, and where
    return [[1, 0, 0], [0, 1, 0]]
