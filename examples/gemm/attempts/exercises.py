# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "Registers for four blocks", zh: "四个线程块的寄存器"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `most_registers(config)`: the registers that each thread can have when `config.blocks` blocks of
#             `config.threads` threads share the 65,536 registers of an SM. A thread gets a multiple of 8, and at most
#             255. What do you expect of four blocks? The fold below measures it.
#           zh: >-
#             写出 `most_registers(config)`：`config.blocks` 个线程块共享一个 SM 的 65,536 个寄存器，每块
#             `config.threads` 个线程，每个线程最多能有几个寄存器？个数是 8 的倍数，最多 255。放四个线程块，你预计会
#             怎样？实测见下面的折叠栏。
#         fails: "64 x 128, blocks = 3"
#       2:
#         title: {en: "An instance of your own", zh: "自己选一个实例"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Find an instance `MINE` that this page has not tried, and write down what you expect. The check computes
#             two products with it. Then time it beside ours, as the program of this page does. A kernel of your own
#             is checked, timed and ranked by `python -m cudatut try gemm my_sgemm.cu`.
#           zh: >-
#             找一个本页没有试过的实例 `MINE`，写下你的预计。检查程序用 `MINE` 做两次矩阵乘法。然后像本页的程序那样，与本书的实例一起
#             计时。你自己写的 kernel，可以用 `python -m cudatut try gemm my_sgemm.cu` 检查、计时并排名。
#         fails: "tried before"
# ---
# %% stub-1
def most_registers(config):
    """Registers that a thread can have, if the blocks shall share an SM."""
    return 255  # yours


# %% stub-2
MINE = sgemm.Config(64, 128, 16, 8, 8, 3, 3, rate=0.8)  # yours: another one
