# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "The nearest pixel, in integers", zh: "最近的像素，用整数计算"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Resize a gray image of `height` x `width` to `rows` x `columns`:
#             each pixel of the output is the pixel of the image in which its
#             center lies. Along an axis of n pixels that becomes `to` pixels,
#             the center of pixel x lies at (x + 1/2) n / to. Write `nearest`, in
#             integers alone.
#           zh: >-
#             把 `height` x `width` 的灰度图缩放为 `rows` x
#             `columns`：输出的每个像素取它的中心落入的那个像素。一条轴由 n 个像素变为 `to`
#             个像素时，像素 x 的中心位于 (x + 1/2) n / to。写 `nearest`，只用整数。
#         fails: "never written"
#       2:
#         title: {en: "The mean of an area", zh: "一块区域的平均值"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             A bilinear resize to a tenth looks at 4 of 100 pixels and misses
#             what lies between. Write `shrink`, which makes each pixel of the
#             output the mean of `k` x `k` pixels of a gray image, rounded to
#             the nearest integer, halves upwards. The image has `rows * k` x
#             `columns * k` pixels. For k = 2 this is what the bilinear resize
#             does. Why?
#           zh: >-
#             双线性缩小到十分之一，100 个像素只看 4 个，其余的都漏掉了。写
#             `shrink`：输出的每个像素是灰度图中 `k` x `k`
#             个像素的平均值，取最近的整数，一半时向上。图像有 `rows * k` x `columns * k`
#             个像素。k = 2 时，这正是双线性缩放的结果。为什么？
#         fails: "never written"
#       3:
#         title: {en: "Back from the letterbox", zh: "从 letterbox 变回去"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             A network has found boxes in a letterbox: x0, y0, x1, y1 each, in
#             pixels of the letterbox, as edges and not as centers. Write
#             `back`, which moves them to the image of `height` x `width`, of
#             which `new_height` x `new_width` pixels lie from row `top` and
#             column `left` on. What leaves the image ends at its edge.
#           zh: >-
#             网络在 letterbox 里找到了一些框，每个框为 x0、y0、x1、y1，以 letterbox
#             的像素为单位，表示边而不是中心。写 `back`，把它们变换到 `height` x `width`
#             的原图；原图在 letterbox 中占 `new_height` x `new_width` 个像素，从第
#             `top` 行、第 `left` 列开始。超出原图的部分截到边上。
#         fails: "never written"
# ---

# %% stub-1
nearest = ct.Kernel(
    """
__global__ void nearest(unsigned char* out, const unsigned char* image,
                        int rows, int columns, int height, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  // yours: large images have centers beyond the range of an int
}
""",
    "nearest",
)

# %% stub-2
shrink = ct.Kernel(
    """
__global__ void shrink(unsigned char* out, const unsigned char* image,
                       int rows, int columns, int k) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  // yours: k * k bytes add up to more than a byte holds
}
""",
    "shrink",
)

# %% stub-3
back = ct.Kernel(
    """
__global__ void back(float4* out, const float4* boxes, int n, int height,
                     int width, int new_height, int new_width, int top,
                     int left) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  // yours: boxes[i].x is x0, .y is y0, .z is x1, .w is y1
}
""",
    "back",
)
