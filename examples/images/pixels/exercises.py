# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Gray", zh: "灰度图"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Make a gray image, one byte for each pixel, of an RGB image. The
#             light of a pixel is (77 R + 150 G + 29 B + 128) / 256 in integers,
#             since green looks brightest to us. Write the kernel `gray`, and
#             `over`, which returns grid and block for any size: blocks have
#             32 x 8 threads, x counts pixels of a row.
#           zh: >-
#             把 RGB 图像变成灰度图，每个像素一个字节。像素的亮度是
#             (77 R + 150 G + 29 B + 128) / 256，用整数计算；绿色在人眼里最亮，所以权重最大。
#             写 kernel `gray`，以及对任何大小返回网格和线程块的 `over`：线程块为 32 x 8
#             个线程，x 沿着一行。
#         fails: "never written"
#       2:
#         title: {en: "A quarter turn", zh: "转四分之一圈"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Turn an image clockwise by a quarter: its first row becomes the
#             last column. `out` has `width` rows of `height` pixels. Write
#             `turn`. A thread has pixel (y, x) of which image, so that a warp
#             writes neighbors? Blocks have 32 x 8 threads, the grid covers the
#             output.
#           zh: >-
#             把图像顺时针转四分之一圈：第一行变成最后一列。`out` 有 `width` 行，每行 `height`
#             个像素。写 `turn`。线程的像素 (y, x) 应当属于哪一幅图像，线程束才会写相邻的像素？
#             线程块为 32 x 8 个线程，网格覆盖输出。
#         fails: "never written"
#       3:
#         title: {en: "Back to HWC, four pixels a thread", zh: "变回 HWC，每个线程四个像素"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             `planes` has three channels of `pixels` bytes each, and `pixels` is
#             a multiple of 4. Write `to_hwc_four`: a thread reads one word of
#             each channel and writes three words, the 12 bytes of its four
#             pixels. Use `__byte_perm`.
#           zh: >-
#             `planes` 有三个通道，每个通道 `pixels` 个字节，`pixels` 是 4 的倍数。写
#             `to_hwc_four`：每个线程从每个通道读一个字，写三个字，也就是四个像素的 12
#             个字节。请用 `__byte_perm`。
#         fails: "never written"
# ---

# %% stub-1
gray = ct.Kernel(
    """
__global__ void gray(unsigned char* out, const unsigned char* image,
                     int height, int width) {
  // yours: the pixel of this thread, if there is one
}
""",
    "gray",
)


def over(height, width):
    return (1, 1), (32, 8)  # yours: enough blocks for every pixel


# %% stub-2
turn = ct.Kernel(
    """
__global__ void turn(unsigned char* out, const unsigned char* image,
                     int height, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;  // of the output
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  // yours: which pixel of the image comes here?
}
""",
    "turn",
)

# %% stub-3
to_hwc_four = ct.Kernel(
    """
__global__ void to_hwc_four(unsigned* out, const unsigned* planes,
                            int pixels) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;  // four pixels
  // yours: a channel has pixels / 4 words
}
""",
    "to_hwc_four",
)
