# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Back to a picture", zh: "变回图片"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             `planes` is what a network gets: three planes of n pixels in bf16,
#             red first, normalized. Write `back`, which makes an image of it
#             again: `image` has three bytes for each pixel, red first. A value v
#             of channel c was a level of `255 * (v * std[c] + mean[c])`; round to
#             the nearest one, from 0 to 255. Blocks have 256 threads. Does every
#             level survive bf16? The check knows.
#           zh: >-
#             `planes` 是网络得到的输入：三个平面，每个 n 个像素，bf16，红色在前，已经归一化。写
#             `back` 把它变回图像：`image` 每个像素三个字节，红色在前。通道 c 的值 v 原来的灰度级是
#             `255 * (v * std[c] + mean[c])`，取最近的一级，限制在 0 到 255。每个线程块 256
#             个线程。每一级经过 bf16 之后都还在吗？检查程序会告诉你。
#         fails: "never written"
#       2:
#         title: {en: "Boxes on the photograph", zh: "照片上的框"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             A network has found boxes in its input: left, top, right, bottom, in
#             pixels of the input, with fractions. Write `on_photograph`, which
#             says where they lie in the photographs. Box i is of image `of[i]`,
#             and `letters` says where that one lies in the input. A box that goes
#             beyond the photograph ends at its edge. Blocks have 256 threads.
#           zh: >-
#             网络在它的输入里找到了一些框：左、上、右、下，以输入的像素为单位，可以有小数。写
#             `on_photograph` 求出它们在照片里的位置。第 i 个框属于第 `of[i]` 幅图像，`letters`
#             说明该图像在输入里的位置。超出照片的框到照片边缘为止。每个线程块 256 个线程。
#         fails: "never written"
#       3:
#         title: {en: "The middle of a photograph", zh: "取照片的中间"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Networks that name what an image shows often get its middle: the
#             image is made so small or large that its shorter side has `side`
#             pixels, and of the longer one the middle is taken. `pixel.cu` can do
#             that, if the table says so: write `middle`, which returns
#             new_height, new_width, top and left. Round the longer side to the
#             nearest number, and top and left down. What do negative ones mean?
#           zh: >-
#             给图像分类的网络常常只看中间：先缩放图像，使短边为 `side`
#             像素，再取长边的中间部分。只要表里的数对，`pixel.cu` 就能做到：写
#             `middle`，返回 new_height、new_width、top 和 left。长边取最近的整数，top 和 left
#             向下取整。负数是什么意思？
#         fails: "are wrong"
# ---

# %% stub-1
back = ct.Kernel(
    """
// A bf16 has the first 16 bits of the float of the same value.
__global__ void back(const unsigned short* planes, const float* mean,
                     const float* std, unsigned char* image, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  // yours: the three channels of pixel i
}
""",
    "back",
)

# %% stub-2
on_photograph = ct.Kernel(
    """
struct Letter {  // in pixels: of the input, and for one of it
  float top, left, down, across;
  float height, width;  // of the photograph
};

__global__ void on_photograph(const float4* boxes, const int* of,
                              const Letter* letters, float4* out, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  // yours: box i; left, top, right, bottom are x, y, z, w
}
""",
    "on_photograph",
)


# %% stub-3
def middle(height, width, side):
    return side, side, 0, 0  # yours: new_height, new_width, top, left
