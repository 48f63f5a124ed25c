# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Twice as much", zh: "乘以二"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             (to write: inputs, output, what the check does; the kernel below stores 2 * x[i] in out[i])
#           zh: >-
#             （待写：输入、输出、检查的内容；下面的 kernel 把 2 * x[i] 存入 out[i]）
#         fails: "never written"
#       2:
#         title: {en: "The other way round", zh: "倒过来"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             (to write: inputs, output, what the check does; the kernel below stores x[n - 1 - i] in out[i])
#           zh: >-
#             （待写：输入、输出、检查的内容；下面的 kernel 把 x[n - 1 - i] 存入 out[i]）
#         fails: "never written"
# ---

# %% stub-1
source = """
__global__ void twice(const float *x, float *out, int n) {
  // yours: one element for each thread
}
"""

# %% stub-2
source = """
__global__ void reverse(const float *x, float *out, int n) {
  // yours: one element for each thread
}
"""
