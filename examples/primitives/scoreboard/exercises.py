# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "One number for many ratios", zh: "用一个数概括许多比值"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Write `mean_ratio`. It makes one number of many ratios, and whoever
#             divides the other way round, their times by ours, must get its
#             reciprocal. The arithmetic mean of the stub does not do so.
#           zh: >-
#             写 `mean_ratio`，把许多比值概括成一个数。把双方对调、反过来相除的人，应当得到它的倒数。给出的算术平均做不到这一点。
#         fails: "both ways"
#       2:
#         title: {en: "An interval for a median", zh: "中位数的区间"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             A contest has n ratios, sorted into x[0] to x[n - 1]. With which k
#             does the true median lie from x[k] to x[n - 1 - k] in at least 95 of
#             100 contests? Each ratio lies below it with probability 1/2, as a
#             coin falls. Write `rank`, which returns the largest such k, for n of
#             at least 6.
#           zh: >-
#             一场比赛有 n 个比值，排好序为 x[0] 到 x[n - 1]。k 取多大时，100 场比赛里至少有 95 场，真正的中位数落在
#             x[k] 到 x[n - 1 - k] 之间？每个比值小于它的概率是 1/2，如同抛硬币。写 `rank`，返回满足条件的最大
#             k；n 不小于 6。
#         fails: "rank"
#       3:
#         title: {en: "Few keys, one launch", zh: "键不多，只启动一次"}
#         level: medium
#         minutes: 30
#         task:
#           en: >-
#             Write `sort_few`: one block of 512 threads sorts n <= 1024 unsigned
#             keys in shared memory. A bitonic sort fits: for size = 2, 4, ...,
#             1024 and step = size / 2, ..., 1, each thread orders one pair of
#             keys, i and i + step with i / step even; ascending where i and size
#             have no bit in common, else descending. Fill up with 0xffffffff.
#           zh: >-
#             写 `sort_few`：一个 512 线程的线程块在共享内存里给 n <= 1024
#             个无符号键排序。可以用双调排序：size 取 2、4、……、1024，step 取 size / 2、……、1，每个线程给一对键排好次序，即
#             i 与 i + step（i / step 为偶数）；i 与 size 没有公共的位时升序，否则降序。空位填 0xffffffff。
#         fails: "never written"
# ---

# %% stub-1
def mean_ratio(ratios):
    """One number for many ratios."""
    return sum(ratios) / len(ratios)  # yours


# %% stub-2
def rank(n):
    """The largest k for which x[k] to x[n - 1 - k] has the median often
    enough."""
    return 0  # yours


# %% stub-3
sort_few = ct.Kernel(
    """
__global__ void sort_few(const unsigned* keys, unsigned* out, int n) {
  __shared__ unsigned tile[1024];
  // yours: load, order pairs, store
}
""",
    "sort_few",
)
