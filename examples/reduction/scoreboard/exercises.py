# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "When a sum stops growing", zh: "总和什么时候不再增长"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Add ones in float32, one after another. From which number of ones on does the sum not change any
#             more? Derive it from eps, the spacing of floats between 1 and 2.
#           zh: >-
#             用 float32 把 1 逐个加起来。加到多少个之后，总和就不再变了？请用 eps（1 到 2 之间相邻两个 float 的间隔）
#             推出来。
#         fails: "stops at"
#       2:
#         title: {en: "Nothing lost", zh: "一点也不丢"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Write Kahan's sum: keep what each addition rounds away in a variable, and subtract it from the
#             next element. The check allows an error of about two units in the last place. The plain loop
#             of the stub has more. As a rung, `python -m cudatut try reduction my_kahan.cu` times it.
#           zh: >-
#             写出 Kahan 求和：把每次加法舍掉的部分存进一个变量，从下一个元素里减去。检查程序只允许大约两个末位单位的
#             误差，给出的普通循环误差更大。写成阶梯上的一个 kernel 之后，`python -m cudatut try reduction my_kahan.cu` 会给它计时。
#         fails: "n=100000"
# ---
# %% stub-1
def stops_growing_at():
    """The number of ones at which a running float32 sum of ones stops."""
    return 1.0  # yours


# %% stub-2
kahan = ct.Kernel(
    """
// One thread adds n floats.
__global__ void kahan(const float* x, float* out, int n) {
  float sum = 0;  // yours: keep what is lost
  for (int i = 0; i < n; ++i) sum += x[i];
  out[0] = sum;
}
""",
    "kahan",
)
