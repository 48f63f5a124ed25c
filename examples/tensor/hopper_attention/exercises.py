# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Who holds this score?", zh: "这个分数在哪个线程里？"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             A warpgroup has 64 x 128 scores. A lane holds 64 of them, s[0] to s[63]. Return the warp (0 to 3), the lane
#             and the number of the register that hold the score in a row and a column. The check looks at all of them.
#           zh: >-
#             一个线程束组有 64 x 128 个分数，每个 lane 持有 64 个，即 s[0] 到 s[63]。给定行和列，返回分数所在的
#             线程束（0 到 3）、lane 和寄存器的编号。检查程序会核对全部分数。
#         fails: "warp, lane and register"
#       2:
#         title: {en: "Which phase?", zh: "等哪个相位？"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Tile n of a ring of buffers: return the buffer, the parity that the producer waits for at the empty barrier
#             of this buffer before it copies, and the parity that the consumer waits for at its full barrier. A barrier
#             that is new behaves as if a phase of parity 1 had ended. The check lets both run in a random order.
#           zh: >-
#             对环形缓冲区里的第 n 块，返回所在的缓冲区、生产者复制之前在该缓冲区的 empty 屏障上要等的奇偶、消费者在 full
#             屏障上要等的奇偶。刚初始化的屏障，相当于刚结束了一个奇偶为 1 的相位。检查程序会让两者以随机次序运行。
#         fails: "tiles in order"
#       3:
#         title: {en: "Which tile first?", zh: "先算哪一块？"}
#         level: medium
#         minutes: 15
#         given: ["1 %", "1%"]
#         task:
#           en: >-
#             With a causal mask tile i of a head's queries needs i + 1 steps. 32 heads have 64 tiles each. Return all
#             pairs of a head and a tile in the order in which 132 blocks shall draw them. The last block to end must need
#             at most 1 % more steps than a block has on average.
#           zh: >-
#             带因果掩码时，一个头的第 i 块查询需要 i + 1 步。共 32 个头，各有 64 块。返回全部（头，块）的列表，
#             按 132 个线程块领取的次序排列。最后结束的线程块所用的步数，最多只能比平均多 1%。
#         fails: "steps of the last block"
# ---
# %% stub-1
def holder(row, column):
    return 0, 0, 0  # yours: warp, lane, register


# %% stub-2
def places(n, stages):
    return 0, 0, 0  # yours: buffer, parity of empty, parity of full


# %% stub-3
def order(heads, tiles):
    # yours: the tiles that need many steps should not come last
    return [(head, tile) for head in range(heads) for tile in range(tiles)]
