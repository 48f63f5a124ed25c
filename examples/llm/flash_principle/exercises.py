# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "One more tile", zh: "再来一个分块"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             `base`, `total` and `o` describe what one query has seen so far. Add a tile of scores, [keys], and
#             values, [keys, d], and return the three. The check sends the same keys in tiles of several sizes,
#             with scores that rise from tile to tile; a tile may hold only scores of -inf.
#           zh: >-
#             `base`、`total` 和 `o` 记录一个查询到目前为止的状态。加上一个分块的分数（[keys]）和值（[keys, d]），
#             返回更新后的三个量。检查程序用几种大小给同样的键分块，逐块传入，分数一块比一块高；
#             有的分块里的分数可能全是 -inf。
#         fails: "result"
#       2:
#         title: {en: "Bytes with a causal mask", zh: "因果掩码下的字节数"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             With a causal mask, a tile of queries needs no keys behind its last query. Return the number of
#             elements that move with the queries outside, for n tokens of d elements and tiles of bm queries and bn
#             keys; tiles of keys are loaded whole, but not beyond the last token. The check counts in a loop.
#           zh: >-
#             有因果掩码时，一块查询用不到最后一个查询之后的键。给定 n 个词元、每个 d 个元素，查询每块 bm 个，
#             键每块 bn 个，查询在外层，返回搬运的元素个数；键按整块读取，但不超出最后一个词元。检查程序用循环计数来核对。
#         fails: "elements moved"
# ---
# %% stub-1
def add_tile(base, total, o, scores, values):
    p = np.exp(scores - scores.max())
    return scores.max(), total + p.sum(), o + p @ values  # yours


# %% stub-2
def elements_moved(n, d, bm, bn):
    return 2 * n * d + -(-n // bm) * 2 * n * d  # yours: without a mask
