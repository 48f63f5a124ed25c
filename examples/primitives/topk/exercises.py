# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "The order of doubles", zh: "double 的次序"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `order64`. It stores for each double an unsigned number of
#             64 bits, so that these numbers compare as the doubles do. NaN is
#             the largest, and -0.0 equals 0.0. `__double_as_longlong(x)` has
#             the bits of x. Blocks have 256 threads.
#           zh: >-
#             写 `order64`：为每个 double 存一个 64 位无符号数，使这些数的大小关系与
#             double 的大小关系一致。NaN 最大，-0.0 等于 0.0。
#             `__double_as_longlong(x)` 返回 x 的二进制位。每个线程块 256 个线程。
#         fails: "are wrong"
#       2:
#         title: {en: "The largest and where", zh: "最大的数和它的位置"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             For k = 1 nobody needs a limit. A block of 256 threads has a row:
#             write `row_best`, which stores the index of the largest number of
#             each row, the smaller one of equals. `candidate` and `index_of`
#             of this chapter make the words that you need.
#           zh: >-
#             k = 1 时用不着下限。每个 256 线程的线程块负责一行：写
#             `row_best`，存下每行最大的数的下标，有多个时取最小的下标。本章的
#             `candidate` 和 `index_of` 可以拼出和拆开所需的字。
#         fails: "never written"
#       3:
#         title: {en: "Halve the range", zh: "每次排除一半"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Write `kth_largest`, which stores the k-th largest number of each
#             row without any counters in shared memory. It finds its `order`
#             bit by bit, from the highest on: is the bit 1, because at least k
#             numbers are no smaller with it? `__syncthreads_count(p)` is a
#             barrier that returns for how many threads p is true. A block of
#             256 threads has a row of n <= 256 numbers.
#           zh: >-
#             写 `kth_largest`，存下每行第 k 大的数，不在共享内存里设计数器。从最高位开始逐位确定它的
#             `order`：这一位取 1 时，是否至少有 k
#             个数不比它小？`__syncthreads_count(p)` 是屏障，返回有多少个线程的 p
#             为真。每个 256 线程的线程块负责一行，每行 n <= 256 个数。
#         fails: "never written"
# ---

# %% stub-1
order64 = ct.Kernel(
    """
__global__ void order64(const double* x, unsigned long long* order, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  // yours
}
""",
    "order64",
)

# %% stub-2
row_best = ct.Kernel(
    """
#include "primitives/topk/select.cuh"  // candidate, index_of

extern "C" __global__ void row_best(const float* x, int* index, int n) {
  const float* row = x + (long long)blockIdx.x * n;
  // yours: each thread its numbers, then the block
}
""",
    "row_best",
)

# %% stub-3
kth_largest = ct.Kernel(
    """
#include "primitives/topk/select.cuh"  // order, number_of

extern "C" __global__ void kth_largest(const float* x, float* out, int n,
                                       int k) {
  // yours: all threads of the block take part in each count
}
""",
    "kth_largest",
)
