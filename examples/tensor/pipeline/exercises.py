# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Stage and parity", zh: "缓冲区与奇偶"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `waits(step, stages)`: the stage that step number `step` uses, counted from 0; the parity with which the
#             consumer waits for `full`; and the parity with which the producer waits for `empty`. A barrier begins in phase 0,
#             and a wait for parity 1 on a new barrier returns at once. The check plays both parts on the CPU.
#           zh: >-
#             写出 `waits(step, stages)`：第 `step` 步（从 0 数起）用哪个缓冲区，消费者等 `full` 时用哪个奇偶，生产者等 `empty`
#             时用哪个奇偶。屏障从相位 0 开始；在新屏障上等奇偶 1 会立即返回。检查程序在 CPU 上模拟生产者与消费者。
#         fails: "are wrong"
#       2:
#         title: {en: "A third consumer", zh: "第三个消费者"}
#         level: medium
#         minutes: 30
#         task:
#           en: >-
#             Give the kernel of `two_consumers.cu` a third warpgroup that multiplies, so that a block computes 192 x 192. Write
#             the replacements as pairs of words in `CHANGES`. A block of 512 threads may have 128 registers for each thread
#             when it starts, and 65536 altogether after they have been given away and taken. Needs `sm_90a`.
#           zh: >-
#             给 `two_consumers.cu` 的 kernel 增加第三个做乘法的线程束组，让一个线程块计算 192 × 192。把要替换的文字成对写进
#             `CHANGES`。512 个线程的线程块启动时每个线程最多有 128 个寄存器，归还和取用之后总共最多 65536 个。需要 `sm_90a`。
#         fails: "are wrong"
# ---
# %% stub-1
def waits(step, stages):
    """Stage, parity of the consumer's wait, parity of the producer's wait."""
    return step % stages, 0, 1  # yours: this is right in the first round only


# %% stub-2
CHANGES = [
    ("BM = 128, BN = 256", "BM = 192, BN = 192"),
    # yours: what else depends on how many consumers there are?
]
