# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "The maximum", zh: "求最大值"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write the kernel `largest`: each block of 256 threads stores the maximum of its elements in
#             `out[blockIdx.x]`, with the same tree. What must the threads past the end write? `maximum`
#             launches it until one number is left. The check uses negative numbers only.
#           zh: >-
#             写出 kernel `largest`：每个 256 线程的线程块用同样的树，把自己那些元素的最大值写到
#             `out[blockIdx.x]`。下标超出末尾的线程应该写什么？`maximum` 会反复启动这个 kernel，直到只剩一个数。
#             检查程序用的全是负数。
#         fails: "never written|element 0"
#       2:
#         title: {en: "A dot product", zh: "点积"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Write `dot(x, y)`, which returns an array of one element: the sum of `x[i] * y[i]`. Do not
#             write the products to memory. Count the bytes for n elements first, with and without that
#             array. Which launches can use the kernel `sums` of this chapter, and which one cannot?
#           zh: >-
#             写出 `dot(x, y)`，返回只有一个元素的数组：`x[i] * y[i]` 之和。乘积不要写回内存。先数一数
#             n 个元素要搬多少字节：写回中间数组时是多少，不写时是多少。哪几次启动可以用本章的 kernel
#             `sums`，哪一次不行？
#         fails: "never written|element 0"
# ---
# %% stub-1
largest = ct.Kernel(
    """
__global__ void largest(const float* in, float* out, int n) {
  // yours
}
""",
    "largest",
)


# %% stub-2
def dot(x, y):
    out = ct.empty(1, "float32")
    return out  # yours: a kernel that multiplies, then launches of sums
