# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "The logarithm of a share", zh: "份额的对数"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Write `log_softmax` for the rows of x in NumPy, in x's own type. The logarithm of the softmax will not
#             do: a share may be too small for the type, and its logarithm is not. The check compares with float64,
#             also for large numbers and for numbers that lie far apart.
#           zh: >-
#             用 NumPy 写出 `log_softmax`，逐行计算，并保持 x 的类型。
#             不能先求 softmax 再取对数：份额可能小到这种类型表示不了，份额的对数却不会。检查程序与 float64 的结果比较，
#             其中有数值很大的行，也有各数相差很远的行。
#         fails: "log_softmax"
#       2:
#         title: {en: "Join two parts of a row", zh: "合并一行的两部分"}
#         level: medium
#         minutes: 15
#         task:
#           en: >-
#             Each of two parts of a row has a pair (largest, sum); the sum is relative to that largest number.
#             A part that sees nothing has (-inf, 0). `join` returns the pair of both parts. The check cuts
#             rows at random places and joins the parts, some of them empty, in any order; nothing may become NaN.
#           zh: >-
#             一行的两部分已经分别求过总和。每部分的结果是一对数（最大值，总和），求总和时减去的就是这个最大值；如果一部分什么都看不见，结果是
#             (-inf, 0)。`join` 返回两部分合并后的（最大值，总和）。检查程序在随机位置把行切开，以任意次序合并，有些部分是空的；
#             任何结果都不能是 NaN。
#         fails: "sum of the joined parts"
#       3:
#         title: {en: "A warp per row", zh: "一行一个线程束"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Write `softmax_warp`: a block of 32 threads has a row of `width` floats, of any length. Each lane keeps
#             its own pair of largest number and sum over columns lane, lane + 32, ...; then the lanes join their
#             pairs by shuffles, and a second walk writes the shares. A lane may have no column at all. The check
#             compares with NumPy.
#           zh: >-
#             编写 `softmax_warp`：一个 32 线程的线程块处理一行，共 `width` 个 float，长度任意。每个 lane 依次处理第 lane、
#             lane + 32……列，记录自己的最大值与总和；然后各 lane 用洗牌合并各自的结果，第二遍写出份额。有的 lane 可能一列也没有。
#             检查程序与 NumPy 的结果比较。
#         fails: "softmax_warp"
# ---
# %% stub-1
def log_softmax(x):
    """The logarithm of each share, row by row; in the type of x."""
    powers = np.exp(x)  # yours: this overflows, and its logarithm may be -inf
    return np.log(powers / powers.sum(axis=1, keepdims=True))


# %% stub-2
def join(a, b):
    """The pair (largest, sum) of two parts, from the pairs of each."""
    return max(a[0], b[0]), a[1] + b[1]  # yours: the sums are not comparable


# %% stub-3
code = r"""
__global__ void softmax_warp(const float *x, float *out, int width) {
  x += (size_t)blockIdx.x * width, out += (size_t)blockIdx.x * width;
  float largest = -INFINITY, sum = 0.0f;
  for (int c = threadIdx.x; c < width; c += 32) {
    // yours: the next number
  }
  // yours: join the pairs of all lanes
  for (int c = threadIdx.x; c < width; c += 32)
    out[c] = expf(x[c] - largest) / sum;
}
"""
