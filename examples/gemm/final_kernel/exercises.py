# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "Always down", zh: "去掉蛇形"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Let `multiply` go down each column: `always_down(source)` returns the text of `final.cu` with one
#             line changed. Predict how many FMAs no longer keep a word (`.reuse`). The check compares all bits
#             and counts in the SASS.
#           zh: >-
#             让 `multiply` 每一列都往下走，而不是一列往下、一列往上：`always_down(source)` 返回改了一行的
#             `final.cu` 源码。先预测有多少条 FMA 不再留住操作数（`.reuse`）。检查程序逐位比较乘积，并在 SASS 里计数。
#         fails: "fewer FMAs keep a word"
#       2:
#         title: {en: "A cost model for your GPU", zh: "给你的 GPU 做代价模型"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             The constants in `sgemm.CONFIGS` were fitted on an H100. Write `share_of_limit`, which computes the share
#             of the FMA limit from the `cycles` that so many `blocks` on each SM take: solve `sgemm.span` for it. The
#             check puts in the model's own cycles; the fold below measures.
#           zh: >-
#             `sgemm.CONFIGS` 里的常数是在 H100 上拟合的。写出 `share_of_limit`，由时间算出占 FMA 上限的比例：每个 SM
#             上有 `blocks` 个线程块，用了 `cycles` 个周期，两者的关系见 `sgemm.span`，请反解出这个比例。
#             检查程序代入模型自己的周期数；实际测量见下面的折叠栏。
#         fails: "64 x 128, blocks = 1"
# ---
# %% stub-1
def always_down(source):
    """final.cu with one line of `multiply` changed."""
    return source  # yours


# %% stub-2
def share_of_limit(cycles, blocks, depth, config):
    """Share of its FMA limit that an SM with so many blocks reaches."""
    return 1.0  # yours: solve `sgemm.span` for it
