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
#             Every block of 256 threads takes 256 words of x and writes them in reverse order to the same place of out.
#             The last block may have fewer words; reverse those that it has. Let each thread read the word of its own
#             index and write the word of its own index, and let the words change places in shared memory. Where does
#             the barrier go, and why may no thread return before it? The check compares arrays of several lengths.
#           zh: >-
#             每个线程块有 256 个线程，负责 x 中的 256 个字，把它们逆序写到 out 的相同位置。最后一个线程块可能不足 256 个字，
#             有几个就逆序几个。每个线程读下标与自己对应的字，也写下标与自己对应的字，由共享内存完成换位。
#             栅栏应该放在哪里？为什么任何线程都不能在栅栏之前返回？检查程序会用几种长度的数组来比较。
#         fails: "never written"
#       2:
#         title: {en: "A transpose, coalesced on both sides", zh: "两边都合并的转置"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             The transpose of the last chapter had one scattered side. Let a block of 32 x 8 threads carry a tile of
#             32 x 32 words through shared memory, so that loads and stores both touch 4 sectors per request. Give the
#             rows of the tile 33 words instead of 32: a later chapter explains why that is faster. The check transposes
#             matrices of odd shapes and then times the kernel beside a copy.
#           zh: >-
#             上一章的转置总有一边是分散的。请让 32 x 8 个线程的线程块把 32 x 32 个字的分块经由共享内存转手，
#             使读和写每次请求都只碰到 4 个扇区。分块的每行声明为 33 个字而不是 32 个：后面有一章会解释为什么这样更快。
#             检查程序先转置各种大小的矩阵，再把它与复制放在一起计时。
#         fails: "never written"
#       3:
#         title: {en: "A mean over neighbors", zh: "邻域平均"}
#         level: hard
#         minutes: 30
#         task:
#           en: >-
#             out[i] is the mean of x[i] and of `radius` neighbors on each side, with zeros beyond both ends. A block needs
#             blockDim.x + 2 * radius words. radius is an argument, so declare the array as extern __shared__ float near[];
#             the launch sets its size. Let the threads load the words together, also for a radius larger than the block.
#             The check uses radii of 0, 3 and 300.
#           zh: >-
#             out[i] 是 x[i] 与左右各 radius 个邻居的平均值，两端之外当作 0。一个线程块需要 blockDim.x + 2 * radius 个字。
#             radius 是参数，所以要把数组声明为 extern __shared__ float near[];，大小由启动时给出。
#             让线程们一起把这些字搬进来，半径比线程块还大时也要正确。检查程序使用的半径是 0、3 和 300。
#         fails: "never written"
# ---

# %% stub-1
reverse = ct.Kernel("""
__global__ void reverse(const float* __restrict__ x,
                        float* __restrict__ out, int n) {
  __shared__ float words[256];
  // yours
}
""", "reverse")  # fmt: skip

# %% stub-2
transpose = ct.Kernel("""
#define TILE 32

__global__ void transpose(const float* __restrict__ in,
                          float* __restrict__ out,
                          int rows, int columns) {
  __shared__ float tile[TILE][TILE + 1];
  // yours: 8 rows of threads, so each thread carries four words
}
""", "transpose")  # fmt: skip

# %% stub-3
mean = ct.Kernel("""
__global__ void mean(const float* __restrict__ x, float* __restrict__ out,
                     int n, int radius) {
  extern __shared__ float near[];  // blockDim.x + 2 * radius words
  // yours
}
""", "mean")  # fmt: skip
