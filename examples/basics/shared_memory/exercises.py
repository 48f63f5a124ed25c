# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Reverse each block", zh: "逐块逆序"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Every block of 256 threads takes 256 words of x and writes them in reverse order to the same place of out;
#             the last block reverses the words that it has. Each thread reads x and writes out at its own index, and the
#             words change places in shared memory. Where does the barrier go? The check uses several lengths.
#           zh: >-
#             每个线程块有 256 个线程，负责 x 中的 256 个元素，逆序写到 out 的相同位置；最后一个线程块有几个元素就逆序几个。
#             每个线程都按自己的下标读 x、写 out，换位在共享内存里完成。屏障应该放在哪里？检查程序会用几种长度的数组来比较。
#         fails: "never written"
#       2:
#         title: {en: "A transpose, coalesced on both sides", zh: "读和写都合并访问的转置"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Let a block of 32 x 8 threads carry a tile of 32 x 32 words through shared memory, so that loads and stores
#             both touch 4 sectors per request. The rows of the tile have 33 words: a later chapter explains why that is
#             faster. The check transposes matrices of odd shapes and times the kernel beside a copy.
#           zh: >-
#             让 32 x 8 个线程的线程块通过共享内存搬运 32 x 32 个元素的分块，读和写的每次请求都只涉及 4 个扇区。
#             分块的每行声明为 33 个元素：后面有一章会解释为什么这样更快。
#             检查程序先转置各种大小的矩阵，再给转置和复制计时，加以比较。
#         fails: "never written"
#       3:
#         title: {en: "A mean over neighbors", zh: "邻域平均"}
#         level: hard
#         minutes: 30
#         task:
#           en: >-
#             out[i] is the mean of x[i] and of its `radius` neighbors on each side, with zeros beyond both ends. The launch
#             sets the size of near. Let the threads of a block load all words that it needs, also for a radius larger
#             than the block. The check uses radii of 0, 3 and 300.
#           zh: >-
#             out[i] 是 x[i] 与左右各 radius 个相邻元素的平均值，两端之外当作 0。数组 near 的大小在启动时指定。
#             让线程块里的线程一起读入需要的元素，半径比线程块还大时也要正确。检查程序使用的半径是 0、3 和 300。
#         fails: "never written"
# ---

# %% stub-1
source = """
__global__ void reverse(const float* __restrict__ x,
                        float* __restrict__ out, int n) {
  // yours: 256 words of shared memory, and a barrier
}
"""
reverse = ct.Kernel(source, "reverse")

# %% stub-2
source = """
#define TILE 32

__global__ void transpose(const float* __restrict__ in,
                          float* __restrict__ out,
                          int rows, int columns) {
  // yours: a tile of TILE rows of TILE + 1 words, and a barrier. The block
  // has 8 rows of threads, so each thread carries four words.
}
"""
transpose = ct.Kernel(source, "transpose")

# %% stub-3
source = """
__global__ void mean(const float* __restrict__ x, float* __restrict__ out,
                     int n, int radius) {
  extern __shared__ float near[];  // blockDim.x + 2 * radius words
  // yours
}
"""
mean = ct.Kernel(source, "mean")
