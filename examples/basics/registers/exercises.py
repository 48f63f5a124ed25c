# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "A window that stays in registers", zh: "留在寄存器里的窗口"}
#         level: easy
#         minutes: 20
#         task:
#           en: >-
#             smooth_indexed computes a moving average: out[j] is the sum of the last 16 values x[j - 15] ... x[j], divided
#             by 16, separately for each thread; values before the first count as 0. It keeps the last 16 values in an array with the index j % 16, and this
#             index follows the loop. Write smooth_unrolled, which computes the same with constant indices only, for any
#             number of values. The check compares the results, demands that no local memory is left, and times both.
#             Predict first how many words each kernel moves per value.
#           zh: >-
#             smooth_indexed 计算滑动平均：每个线程各算各的，out[j] 等于最近 16 个值 x[j - 15] 到 x[j] 之和除以 16，第一个值之前的按 0 计。
#             它把最近 16 个值放在数组里，用 j % 16 作下标，而这个下标随循环变化。请写出 smooth_unrolled：结果相同，
#             只用常量下标，值的个数任意。检查程序先核对结果，再确认不再使用本地内存，最后给两个 kernel 计时。
#             请先预测：两个 kernel 处理每个值各要传输几个 32 位的字？
#         fails: "never written"
#       2:
#         title: {en: "Counters in shared memory", zh: "共享内存里的计数器"}
#         level: medium
#         minutes: 30
#         task:
#           en: >-
#             Shared memory has addresses, so it can hold an array with any index. Write count_shared(x, out, n, each) for
#             blocks of 256 threads: like count_indexed, but with the 16 counters of each thread in shared memory. Arrange
#             the counters so that threads with neighboring numbers always use neighboring words, if they count the same
#             value. out[k][t] is how often thread t met the value k. Which of the three kernels will be the fastest, and
#             what does yours cost in occupancy? The check compares the counts, then times all three.
#           zh: >-
#             共享内存有地址，可以存放用任意下标访问的数组。请写出 count_shared(x, out, n, each)，线程块为 256 个线程：
#             与 count_indexed 功能相同，但每个线程的 16 个计数器放在共享内存里。请这样安排计数器：编号相邻的线程统计同一个值时，
#             用的总是相邻的元素。out[k][t] 是线程 t 遇到值 k 的次数。三个 kernel 里哪个最快？你的 kernel 会降低占用率吗？
#             检查程序先核对计数，再给三个 kernel 计时。
#         fails: "never written"
# ---

# %% stub-1
source = """
#define WINDOW 16

__global__ void smooth_unrolled(const float* __restrict__ x,
                                float* __restrict__ out, int n, int each) {
  // yours: WINDOW values at a time, every index of `last` a constant
}
"""
smooth_unrolled = ct.Kernel(source, "smooth_unrolled")

# %% stub-2
source = """
__global__ void count_shared(const int* __restrict__ x,
                             int* __restrict__ out, int n, int each) {
  // yours: the thread's value j is x[(size_t)j * n + t]
}
"""
count_shared = ct.Kernel(source, "count_shared")
