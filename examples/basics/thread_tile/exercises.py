# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Below each other or side by side", zh: "上下排列还是左右排列"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Eight results per thread can lie below each other in C, as in the kernel of this chapter: lane l has column l
#             and rows 0 to 7. They could also lie side by side: then the first 8 threads have the 64 columns of row 0,
#             thread t the columns 8t to 8t + 7; the next 8 threads have row 1, and so on. Write first_words(n): for a C of
#             n columns, the index in C of the word that each lane of the first warp stores first, for both layouts. The
#             check counts the sectors of that store, and needs no GPU. What does that say about the kernel?
#           zh: >-
#             一个线程的八个结果在 C 中可以上下排列，本章的 kernel 就是这样：lane l 负责第 l 列的第 0 到 7 行。
#             也可以左右排列：前 8 个线程负责第 0 行的 64 列，线程 t 负责第 8t 到 8t + 7 列；接下来的 8 个线程负责第 1 行，依此类推。
#             请写出 first_words(n)：C 有 n 列时，第一个线程束的每个 lane 最先写入的元素在 C 中的下标，两种排法各返回一组。
#             检查程序会数这次写入涉及几个扇区，不需要 GPU。由此能看出这个 kernel 为什么这样排吗？
#         fails: "side by side"
#       2:
#         title: {en: "Two columns", zh: "两列"}
#         level: medium
#         minutes: 40
#         task:
#           en: >-
#             Let each thread compute 8 x 2 results, so that a word of A is used twice as well. The tiles stay as they are,
#             and 256 threads are enough. Count the words per result from shared memory first. Which two columns should a
#             thread have, so that the lanes of a warp stay neighbors in both? Start from the program of this chapter. The
#             check multiplies matrices of odd shapes and times the kernel beside thread_tile.
#           zh: >-
#             让每个线程算 8 x 2 个结果，这样 A 的每个元素也能用两次。分块不变，256 个线程就够了。
#             先数一数每个结果从共享内存读几个字。一个线程该取哪两列，才能让同一线程束的 lane 在两列上都左右相邻？
#             可以从本章的程序改起。检查程序会计算各种大小的矩阵，并与 thread_tile 一起计时。
#         fails: "never written"
# ---

# %% stub-1
def first_words(n):
    """Indexes in C, one for each lane: (below each other, side by side)."""
    lane = np.arange(32)
    below = lane
    beside = lane  # yours
    return below, beside


# %% stub-2
source = """
#define BM 64
#define BN 64
#define BK 8
#define TM 8
#define THREADS 256

__global__ void two_columns(const float* __restrict__ A,
                            const float* __restrict__ B,
                            float* __restrict__ C, int m, int n, int k) {
  // yours: 256 threads load 512 words of each tile, two per thread
}
"""
two_columns = ct.Kernel(source, "two_columns")
