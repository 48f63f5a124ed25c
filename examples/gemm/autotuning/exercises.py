# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "How many rounds?", zh: "要跑多少轮？"}
#         level: easy
#         minutes: 20
#         given: ["1 %", "5 %", "1%", "5%"]
#         task:
#           en: >-
#             32 candidates, each 1 % slower than the one before. Single runs scatter normally around the true
#             time, with a standard deviation of `scatter` (0.01 is 1 %). Simulate `trials` races that are decided by
#             the median of `rounds` runs. Return how often (in %) the fastest wins, and how much (in %) too slow the
#             winner is on average. Which number of rounds at 5 % is worth one round at 1 %?
#           zh: >-
#             有 32 个候选，每一个都比前一个慢 1%。单次运行的时间以真实时间为中心服从正态分布，标准差为
#             `scatter`（0.01 即 1%）。模拟 `trials` 次比较，每次按 `rounds` 次运行的中位数选出一个候选。返回真正最快的候选
#             被选中的比例（%），以及选出的候选平均慢多少（%）。波动为 5% 时，跑多少轮才抵得上波动为 1% 时的一轮？
#         fails: "right, one round"
#       2:
#         title: {en: "A rule of your own", zh: "自己的规则"}
#         level: medium
#         minutes: 15
#         task:
#           en: >-
#             A product of 1024 x 1024 has few tiles, and a large tile leaves SMs without work. A GPU has `sms` times
#             `config.blocks` block slots, and every tile of `config.bm` x `config.bn` results takes one unit of
#             time. Write `busy(config, m, n)`, the share of the slots that work until the last tile is done. The
#             check hands each tile to the slot that is free first, and compares.
#           zh: >-
#             1024 x 1024 的矩阵乘法分块不多，分块大了就有 SM 空闲。一块 GPU 有 `sms` 乘以 `config.blocks` 个线程块
#             位置，每个 `config.bm` x `config.bn` 的分块用一个单位时间。写出 `busy(config, m, n)`：到最后一个分块
#             完成为止，在工作的位置占多大比例。检查程序把分块依次交给最先空出来的位置，再比较结果。
#         fails: "slots that work"
# ---
# %% stub-1
def picked(rounds, scatter, trials=2000):
    """How often (%) the fastest wins by the median of so many rounds, and how
    much (%) too slow the winner is on average."""
    return 100.0, 0.0  # yours: this race always finds the fastest


# %% stub-2
def busy(config, m, n, sms=gpu.sms):
    """Share of the block slots that work on an m x n product."""
    return 1.0  # yours: this GPU is never idle
