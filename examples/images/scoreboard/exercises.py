# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "What limits a layer", zh: "一层受什么限制"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `bound`. For a convolution it returns the shortest time in
#             microseconds that the operations allow, and the shortest that the
#             bytes allow. An image, its weights and its results move once. Count
#             two operations for each weight that a result meets; `size` is of the
#             image, `out` of the results, both (down, right).
#           zh: >-
#             写 `bound`：给定一层卷积，返回运算量所允许的最短时间和字节数所允许的最短时间，单位微秒。图像、权重和结果各搬运一次。每个结果每用到一个权重算两次运算；`size`
#             是图像的大小，`out` 是结果的大小，都是（行，列）。
#         fails: "operations"
#       2:
#         title: {en: "A network is not the mean of its layers", zh: "网络不是各层的平均"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Layers have a name, how often they occur, and the times of ours and
#             of a rival. Write `whole`. It returns how many times as fast we
#             compute the whole network, and the name of the layer in which most
#             could be won: if it alone took as long as the rival's.
#           zh: >-
#             每一层有名字、出现的次数，以及我们的用时和对手的用时。写 `whole`，返回整个网络我们的速度是对手的多少倍，以及改进余地最大的一层的名字：只把这一层改到与对手一样快，省下的时间最多。
#         fails: "network"
#       3:
#         title: {en: "A depthwise kernel with a window that slides", zh: "滑动窗口的逐通道卷积 kernel"}
#         level: medium
#         minutes: 40
#         task:
#           en: >-
#             Write `columns3`: a depthwise convolution of 3 x 3, stride 1, padding
#             1, in fp32, NCHW. A thread computes one column of a plane, from top
#             to bottom, and reads each word of its three columns of the image
#             once: it keeps three rows of three words and moves them on. Grid: x
#             covers the columns, y has a block for each plane.
#           zh: >-
#             写 `columns3`：fp32、NCHW 的逐通道卷积，窗口 3 x 3，步长 1，填充
#             1。一个线程从上到下算出一个平面的一列，它要用的三列图像里，每个字只读一次：线程保存三行、每行三个字，逐行往下移。网格：x
#             覆盖各列，y 每个平面一个线程块。
#         fails: "never written"
# ---

# %% stub-1
def bound(
    images, channels, size, filters, window, groups, out, word, fma, rate
):
    """Microseconds of the operations and of the bytes. word: bytes of one;
    fma: TFLOP/s, rate: GB/s."""
    return 1.0, 1.0  # yours


# %% stub-2
def whole(layers):
    """layers: a list of (name, how often, our time, the rival's time)."""
    ratios = [theirs / ours for _, _, ours, theirs in layers]
    return sum(ratios) / len(ratios), layers[0][0]  # yours


# %% stub-3
columns3 = ct.Kernel(
    """
__global__ void columns3(const float* image, const float* weights, float* out,
                         int channels, int height, int width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, plane = blockIdx.y;
  // yours: weights of channel plane % channels, then row by row
}
""",
    "columns3",
)
