# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Channels for the TMA", zh: "补齐通道"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             A pixel must have a multiple of 16 bytes. Write `pad_channels`. It
#             copies `pixels` pixels of `channels` values of 16 bits to pixels
#             of `padded` values, and fills the rest with zeros. Blocks have 256
#             threads; neighboring threads should store neighboring values.
#           zh: >-
#             每个像素的字节数必须是 16 的倍数。写 `pad_channels`：把 `pixels`
#             个像素（每个有 `channels` 个 16 位的值）复制成每个有 `padded`
#             个值的像素，多出来的填 0。每个线程块 256 个线程，相邻的线程应当写相邻的值。
#         fails: "never written"
#       2:
#         title: {en: "A tile for a layer", zh: "为一层选分块"}
#         level: medium
#         minutes: 15
#         task:
#           en: >-
#             Write `choose`. All SMs work in turns, each on one tile of
#             `pixels` x `filters` results at a time. A turn takes
#             `turn(pixels, filters)`. Return the tile of `tiles` with which a
#             layer of `m` pixels of results and `n` filters takes the least
#             time; of equal ones the first.
#           zh: >-
#             写 `choose`：所有 SM 一轮一轮地工作，每一轮各算一个 `pixels` × `filters`
#             的分块，一轮用时 `turn(pixels, filters)`。某一层有 `m` 个结果像素、`n`
#             个滤波器，返回 `tiles` 中用时最短的分块；并列时取第一个。
#         fails: "are wrong"
#       3:
#         title: {en: "Behind a C function", zh: "藏在 C 函数后面"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             `library` is compiled from C++. Its function `scale_launch` takes
#             a pointer to floats of the GPU, how many they are (64 bits), a
#             factor (float) and a stream (a pointer, null for the default one).
#             It returns 0, or a number that says what is wrong. Write `scale`,
#             which calls it by ctypes for an array of the GPU, and raises a
#             RuntimeError where it does not return 0.
#           zh: >-
#             `library` 由 C++ 编译而来。它的函数 `scale_launch` 的参数依次是：GPU
#             上 float 数组的指针、元素个数（64 位）、系数（float）和 stream（指针，空指针表示默认
#             stream）。成功时返回 0，否则返回一个表示错误的数。写 `scale`：用 ctypes
#             对 GPU 上的数组调用它，返回值不是 0 时抛出 RuntimeError。
#         fails: "are wrong"
# ---

# %% stub-1
pad_channels = ct.Kernel(
    """
__global__ void pad_channels(const unsigned short* in, unsigned short* out,
                             long long pixels, int channels, int padded) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  // yours: i counts values of the output
}
""",
    "pad_channels",
)


# %% stub-2
def choose(tiles, m, n, sms, turn):
    return tiles[0]  # yours: count the turns of each tile


# %% stub-3
def scale(library, array, factor):
    pass  # yours: tell ctypes the types, since Python's float is a double
