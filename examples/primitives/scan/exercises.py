# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "What precedes each lane", zh: "每个 lane 之前的总和"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             `in` has `rows` rows of 32 ints, and each warp has one of them.
#             Write the exclusive scan of each row to `out`, and the sum of the
#             row to `sums`. Blocks have 128 threads. You need
#             `__shfl_up_sync`, and no shared memory.
#           zh: >-
#             `in` 有 `rows` 行，每行 32 个 int，每个线程束负责一行。把每行不含自身的
#             前缀和写到 `out`，把该行的总和写到 `sums`。每个线程块 128 个线程。需要
#             `__shfl_up_sync`，不需要共享内存。
#         fails: "never written"
#       2:
#         title: {en: "The largest so far", zh: "到目前为止的最大值"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             A scan need not add. Write `largest`: each element of a row
#             becomes the largest of the row up to it. A row has 256 floats,
#             and each block has one, a thread for each element. What stands in
#             for the 0 of a sum?
#           zh: >-
#             前缀运算不一定是加法。写 `largest`：每个元素变成这一行到它为止的最大值。
#             每行 256 个 float，每个线程块负责一行，每个元素一个线程。求和时的 0
#             在这里要换成什么？
#         fails: "never written"
#       3:
#         title: {en: "A recurrence", zh: "递推"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             y[i] = a[i] y[i - 1] + b[i], with y = 0 before the row, looks as if
#             it had to be computed one by one. But a pair (a, b) stands for the
#             function that takes y to a y + b, and two of them after each other
#             are again such a pair. Write `then` for pairs, and use it for rows
#             of 32 elements, one for each warp. Blocks have 128 threads. Which
#             of the two is the left one, and why does it matter?
#           zh: >-
#             y[i] = a[i] y[i - 1] + b[i]，每行之前 y = 0，看上去只能逐个计算。
#             可是一对 (a, b) 代表把 y 变成 a y + b 的函数，先后作用两个这样的函数，
#             结果仍是这样的一对。为它写出 `then`，用于每行 32
#             个元素、每个线程束一行的数据。每个线程块 128 个线程。两对中哪一对在左边？
#             为什么次序重要？
#         fails: "never written"
# ---

# %% stub-1
before_lanes = ct.Kernel(
    """
__global__ void before_lanes(const int* in, int* out, int* sums, int rows) {
  const int row = (blockIdx.x * 128 + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  // yours: all lanes of a warp have the same row
}
""",
    "before_lanes",
)

# %% stub-2
largest = ct.Kernel(
    """
__global__ void largest(const float* in, float* out) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  // yours
}
""",
    "largest",
)

# %% stub-3
recurrence = ct.Kernel(
    """
struct Pair {
  float a, b;
};

// The pair for `left` first, and `right` behind it.
__device__ Pair then(Pair left, Pair right) {
  return left;  // yours
}

__global__ void recurrence(const float* a, const float* b, float* y, int rows) {
  const int row = (blockIdx.x * 128 + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  // yours
}
""",
    "recurrence",
)
