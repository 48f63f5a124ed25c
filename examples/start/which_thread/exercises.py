# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "A number from each thread", zh: "每个线程写一个数"}
#         level: warm-up
#         minutes: 5
#         task:
#           en: >-
#             Complete the kernel `numbers`: thread t of block b stores 10 * b + t. Its place in `out` is its number in
#             the grid, the `i` of this chapter. There are as many elements as threads. The check launches 3 blocks of
#             5 threads, and other sizes.
#           zh: >-
#             补全 kernel `numbers`：b 号线程块的 t 号线程写入 10 * b + t，在 `out` 里的位置是它在网格里的编号，
#             也就是本章的 `i`。元素和线程一样多。检查程序会启动 3 个线程块，每块 5 个线程，还会用别的大小。
#         fails: "never written"
#       2:
#         title: {en: "Backwards", zh: "倒过来"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Complete the kernel `backwards`: one thread for each element, and out[i] becomes x[n - 1 - i].
#             Complete `launch_shape` too: blocks of 256 threads, as many blocks as needed and no more. The check uses
#             lengths that fill no block, and looks for writes past the end.
#           zh: >-
#             补全 kernel `backwards`：每个元素一个线程，让 out[i] 等于 x[n - 1 - i]。再补全 `launch_shape`：
#             每块 256 个线程，线程块的个数刚好够 n 个元素用，不能多。检查程序会用填不满线程块的长度，
#             还会检查有没有写到数组之外。
#         fails: "never written"
#       3:
#         title: {en: "Two elements for each thread", zh: "每个线程两个元素"}
#         level: medium
#         minutes: 15
#         task:
#           en: >-
#             Complete the kernel `add_pairs`: each thread adds two neighbors. Thread 0 of the grid takes elements 0 and
#             1, the next thread 2 and 3, and so on. The launch is given: it starts only as many threads as needed, and n
#             may be odd.
#           zh: >-
#             补全 kernel `add_pairs`：每个线程处理两个相邻的元素。网格里的第一个线程处理元素 0 和 1，下一个线程处理 2 和 3，
#             依此类推。启动部分已经给出，需要多少线程就启动多少。n 可能是奇数。
#         fails: "never written"
# ---
# %% stub-1
module = SourceModule("""
__global__ void numbers(int *out) {
  // yours
}
""")
numbers = module.get_function("numbers")

# %% stub-2
module = SourceModule("""
__global__ void backwards(const float *x, float *out, int n) {
  // yours
}
""")
backwards = module.get_function("backwards")


def launch_shape(n):
    """Number of blocks, and threads in each of them."""
    return 1, 256  # yours: as many blocks as needed


# %% stub-3
module = SourceModule("""
__global__ void add_pairs(const float *x, const float *y, float *out, int n) {
  // yours
}
""")
add_pairs = module.get_function("add_pairs")
