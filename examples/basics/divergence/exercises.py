# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "The shape of a block", zh: "线程块的形状"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             The kernel by_row works on an image and treats even and odd rows differently. Blocks of 64 x 4, 32 x 8,
#             16 x 16 and 8 x 32 threads cover the same pixels. Write most_sides(width, height): the largest number of
#             sides that any warp of a block of width x height threads takes, 1 or 2. Threads are numbered along x first,
#             and 32 neighbors in this order form a warp. Predict the order of the times before you run the check: it
#             compares your numbers and then times the four shapes.
#           zh: >-
#             kernel by_row 处理一幅图像，奇数行与偶数行的处理方式不同。线程块有 64 x 4、32 x 8、16 x 16、8 x 32 四种形状，覆盖的像素相同。
#             请写出 most_sides(width, height)：width x height 个线程的线程块里，一个线程束最多走几个分支，1 或 2。
#             线程先沿 x 方向编号，按这个次序每 32 个组成一个线程束。运行之前先预测哪种形状快、哪种慢：检查程序先核对你给出的数，
#             再给这四种形状计时。
#         fails: "sides"
#       2:
#         title: {en: "Two loops into one", zh: "两个循环合成一个"}
#         level: hard
#         minutes: 40
#         task:
#           en: >-
#             Each thread works on 32 items, and an item takes 1 to 64 turns of WORK FMAs. In the kernel nested, the lanes
#             of a warp wait for each other after every item. Write flattened with a single loop over turns, in which a lane
#             that is done with one item takes its next item at once. Thread t finds item k at x[k * n + t], and its turns
#             in count[k * n + t]. Before you run the check, think: which of the two needs fewer turns of its warps, and
#             which cost does that leave out? The check compares the results and then times both, with short turns (32
#             FMAs) and long ones (256).
#           zh: >-
#             每个线程有 32 个任务，每个任务要转 1 到 64 圈，每圈 WORK 次 FMA。在 kernel nested 里，线程束的各个 lane
#             每做完一个任务就要互相等待。请写出 flattened，只用一个循环，哪个 lane 做完一个任务，就立刻取下一个任务。
#             线程 t 的任务 k 在 x[k * n + t]，圈数在 count[k * n + t]。运行之前先想一想：两者相比，哪个的线程束转的圈数少？
#             只比圈数，漏掉了哪一项代价？检查程序先核对结果，再在每圈较短（32 次 FMA）和较长（256 次）时给两者计时。
#         fails: "never written"
# ---


# %% stub-1
def most_sides(width, height):
    """The most sides that a warp of a block of width x height takes."""
    return 1  # yours: in which rows are the 32 threads of each warp?


# %% stub-2
source = """
__global__ void flattened(const float* __restrict__ x,
                          const int* __restrict__ count,
                          float* __restrict__ out, int n, int items) {
  // yours: one loop; in each turn a lane works on the item that it is at
}
"""
flattened = {
    work: ct.Kernel(source, "flattened", defines={"WORK": work})
    for work in WORKS
}
