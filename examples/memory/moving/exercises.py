# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Choose a way", zh: "选择一种方法"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             A kernel reads `nbytes` of the host's numbers, `reads` times, each
#             time in a launch of its own. Write `choose(nbytes, reads, costs)`,
#             which returns the way with the shortest predicted time, "argument"
#             (for at most 4,000 bytes), "copy" or "zero-copy". `costs` has two
#             times in µs, `launch` (of a kernel) and `copy` (of a copy of next
#             to nothing), and three rates in GB/s, `link` (of a copy), `mapped`
#             (of a kernel that reads the host) and `memory` (of a kernel that
#             reads the GPU's memory). The check compares your choices with
#             times that it measures.
#           zh: >-
#             kernel 要读主机上的 `nbytes` 字节，读 `reads` 遍，每一遍启动一次。写
#             `choose(nbytes, reads, costs)`，返回预测时间最短的方法："argument"（至多
#             4,000 字节）、"copy" 或 "zero-copy"。`costs` 里有两个时间，单位 µs：`launch`
#             （启动一个 kernel）和 `copy`（一次几乎没有数据的复制）；还有三个速率，单位
#             GB/s：`link`（复制）、`mapped`（kernel 读主机内存）和 `memory`（kernel
#             读显存）。检查程序会实测时间，与你的选择比较。
#         fails: "are wrong"
#       2:
#         title: {en: "Rows that lie apart", zh: "不相邻的行"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             `pack` copies `rows` rows of `width` floats, which lie `pitch`
#             floats apart, to where they lie side by side. `width` and `pitch`
#             are multiples of 4. Write the kernel; its grid has 1,024 blocks of
#             256 threads, however many rows there are. Predict its rate for
#             rows of 64 bytes beside the driver's copy in two dimensions.
#           zh: >-
#             `pack` 复制 `rows` 行，每行 `width` 个 float，相邻两行的起点相距 `pitch` 个
#             float；复制之后各行紧挨在一起。`width` 和 `pitch` 都是 4 的倍数。写出这个
#             kernel；不论有多少行，网格都是 1,024 个线程块，每块 256 个线程。先预测：每行
#             64 字节时，与驱动的二维复制相比，速率如何。
#         fails: "never written"
# ---


# %% stub-1
def choose(nbytes, reads, costs):
    """The way with the shortest predicted time, by its name."""
    return "copy"  # yours


# %% stub-2
source = """
__global__ void pack(const float* __restrict__ in, float* __restrict__ out,
                     int rows, int width, int pitch) {
  // yours: vectors of 16 bytes, neighbors by neighboring threads
}
"""
pack = ct.Kernel(source, "pack")
