# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "Where is the token?", zh: "词元在哪里？"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             `slots(table, block_size, start, stop)` gives the slots of the tokens start to stop - 1 of a sequence, an
#             int array. table: the numbers of its blocks. Block b begins at slot b * block_size. No loop is needed.
#           zh: >-
#             `slots(table, block_size, start, stop)` 返回一个序列的词元 start 到 stop - 1 所在的槽位，int 数组。
#             table 是序列各块的编号；第 b 块从槽位 b * block_size 开始。不需要循环。
#         fails: "slots"
#       2:
#         title: {en: "Which block size?", zh: "块取多大？"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Small blocks lose less at the end, but a block costs `per_block` bytes of tables and bookkeeping.
#             `best(lengths, token_bytes, per_block, sizes)` gives the size of `sizes` with which sequences of these
#             lengths take the fewest bytes in all: `token_bytes` for each slot of their blocks, and `per_block` for each
#             block. Of equally good sizes take the smallest.
#           zh: >-
#             块小，末尾的浪费就少；但每块要花 `per_block` 字节的表和管理开销。`best(lengths, token_bytes, per_block, sizes)`
#             返回 `sizes` 中的一个大小，使这些长度的序列总共占用的字节最少：各块的每个槽位 `token_bytes` 字节，
#             每块再加 `per_block` 字节。一样好的大小取最小的。
#         fails: "best size"
# ---
# %% stub-1
def slots(table, block_size, start, stop):
    """The slots of tokens start to stop - 1."""
    return np.arange(start, stop)  # yours: as if side by side


# %% stub-2
def best(lengths, token_bytes, per_block, sizes):
    """The block size with which these sequences take the fewest bytes."""
    return 16  # yours
