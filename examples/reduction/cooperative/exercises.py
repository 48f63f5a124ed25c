# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Least and largest", zh: "最小与最大"}
#         level: easy
#         minutes: 25
#         task:
#           en: >-
#             Find the least and the largest element of an array in one walk and two launches. Write the kernel
#             `extremes`: block b stores the least of the elements of `low` that it meets in `least[b]`, and the
#             largest of `high` in `largest[b]`. Use `cg::reduce` with `cg::less<float>()` and
#             `cg::greater<float>()`. What does a thread start with that meets no element?
#           zh: >-
#             走一遍数组、启动两次，求出最小和最大的元素。请写 kernel `extremes`：线程块 b 把自己在 `low` 里遇到的
#             最小元素写到 `least[b]`，把在 `high` 里遇到的最大元素写到 `largest[b]`。用 `cg::reduce`，配合
#             `cg::less<float>()` 和 `cg::greater<float>()`。一个元素也没遇到的线程，初值应该是什么？
#         fails: "never written|element 0"
#       2:
#         title: {en: "Four sums", zh: "四个累加值"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             For floats the compiler may not reorder additions, so it adds the four loads of a turn one after
#             another to one sum. Write a walk with four sums that do not wait for each other. `out` gets one
#             sum per thread. First predict: does rung 7 wait for its additions? As a rung in a file of your
#             own, with the line `@rung` of `few_blocks.cu`, `python -m cudatut try reduction my_reduce.cu`
#             times it beside the ladder.
#           zh: >-
#             浮点数的加法，编译器不能改变次序，所以一轮里四次读取的结果要一个接一个地加到同一个累加值上。请写一个
#             遍历，用四个互不等待的累加值。每个线程把自己的总和写到 `out`。先预测：第七级的时间花在等加法上吗？把 kernel 放进
#             单独的文件，加上 `few_blocks.cu` 的那行 `@rung`，`python -m cudatut try reduction my_reduce.cu`
#             就会把这个 kernel 和整个阶梯放在一起计时。
#         fails: "n=1"
# ---
# %% stub-1
extremes = ct.Kernel(
    """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void extremes(const float* low, const float* high,
                                    float* least, float* largest,
                                    long long n) {
  // yours
}
""",
    "extremes",
)

# %% stub-2
four_sums = ct.Kernel(
    """
__global__ void four_sums(const float* in, float* out, long long n) {
  long long stride = (long long)gridDim.x * blockDim.x;
  long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  float sums[4] = {};
  // yours: the walk
  out[thread] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
""",
    "four_sums",
)
