# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "No conflicts without padding", zh: "不加填充也没有冲突"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Padding wastes memory, and rows of 33 floats cannot be read 16 bytes at a time. Find a place for
#             element (row, column) of a 32 x 32 tile within 1024 words, so that the 32 elements of each row
#             and also those of each column lie in 32 different banks. `wavefronts` counts the passes.
#           zh: >-
#             填充浪费内存，而且每行 33 个 float 就不能一次读 16 字节。请在 1024 个字里给 32 × 32 分块的元素
#             （行，列）找一个位置，让每一行的 32 个元素、每一列的 32 个元素都落在 32 个不同的存储体里。
#             `wavefronts` 会数出趟数。
#         fails: "row and column 0"
#       2:
#         title: {en: "Complex numbers", zh: "复数"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Sum an array of complex numbers, pairs of floats (real, imaginary), with sequential addressing.
#             A `float2` holds two floats, `.x` and `.y`.
#             Write the kernel `complex_sums`: each block of 256 threads leaves one pair. First predict how
#             many passes a warp needs to read 32 pairs from shared memory: by two loads of 4 bytes, from two
#             separate arrays, or by one load of 8 bytes.
#           zh: >-
#             用连续寻址对复数数组求和，每个元素是一对 float（实部，虚部）。`float2` 含有两个 float：`.x` 和 `.y`。
#             写出 kernel `complex_sums`：每个
#             256 线程的线程块留下一对。先预测一个线程束从共享内存读 32 对要几趟：分两次各读 4 字节、从两个数组
#             分别读、或者一次读 8 字节。
#         fails: "never written"
# ---
# %% stub-1
def place(row, column):
    """Word, 0 to 1023, of element (row, column) of a tile of 32 x 32."""
    return 32 * row + column  # yours


# %% stub-2
complex_sums = ct.Kernel(
    """
__global__ void complex_sums(const float2* in, float2* out, int n) {
  // yours
}
""",
    "complex_sums",
)
