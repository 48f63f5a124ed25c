# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "Merge two partial softmaxes", zh: "合并两段 softmax"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             `merge(out_a, lse_a, out_b, lse_b)` gives attention over all keys from attention over two parts of them.
#             out: [rows, d]; lse: [rows], natural logarithms, -inf for a part without keys, whose row of out is NaN.
#             Return the merged out and lse. Two parts without keys give zeros and -inf. Scores of 1000 must not overflow.
#           zh: >-
#             `merge(out_a, lse_a, out_b, lse_b)` 由两段键各自的注意力结果，得到对全部键的注意力。out 的形状是 [rows, d]；
#             lse 是 [rows]，取自然对数，没有键的一段为 -inf，对应的 out 一行是 NaN。返回合并后的 out 和 lse。两段都没有键时，
#             结果是零和 -inf。分数为 1000 时也不能溢出。
#         fails: "merged"
#       2:
#         title: {en: "Unpack Q4_1", zh: "展开 Q4_1"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             `unpack(blocks)` gives the weights, float32 [rows, 32 * n], of n blocks of Q4_1 in each row, uint8
#             [rows, 20 * n]: d and m in fp16, then 16 bytes; byte j holds number j in its lower half and number
#             j + 16 in its upper half; w = d q + m.
#           zh: >-
#             每行有 n 个 Q4_1 块，uint8，形状 [rows, 20 * n]；`unpack(blocks)` 返回权重，float32，形状 [rows, 32 * n]。
#             一个块先是 fp16 的 d 和 m，再是 16 个字节；第 j 个字节的低 4 位是第 j 个数，高 4 位是第 j + 16 个数；w = d q + m。
#         fails: "weights"
# ---
# %% stub-1
def merge(out_a, lse_a, out_b, lse_b):
    """Attention over both parts: out and lse."""
    return (out_a + out_b) / 2, np.maximum(lse_a, lse_b)  # yours


# %% stub-2
def unpack(blocks):
    """float32 weights of rows of Q4_1 blocks."""
    rows, length = blocks.shape
    return np.zeros((rows, length // 20 * 32), "float32")  # yours
