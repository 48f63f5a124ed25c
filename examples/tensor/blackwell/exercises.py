# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Unpack nvfp4", zh: "解包 nvfp4"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `unpack(packed, scales, whole)`. `packed` has two numbers of 4 bits in each byte, the first in the lower
#             half: a sign, then the place in `E2M1`. `scales` has a float for each 16 numbers, `whole` is one more factor
#             for all. Return the numbers as float64.
#           zh: >-
#             写出 `unpack(packed, scales, whole)`。`packed` 的每个字节里有两个 4 位浮点数，第一个在低半字节：先是符号，然后是它在
#             `E2M1` 中的序号。`scales` 里每 16 个数有一个浮点数，`whole` 是所有数共用的另一个缩放系数。返回 float64 的数。
#         fails: "are wrong"
#       2:
#         title: {en: "A better power of two", zh: "更好的 2 的幂"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             The rule of mxfp4 brings the largest number of a block to at least 4, and up to 8. But the largest number of
#             e2m1 is 6, so some are cut down to it. Write `scale(block)` for 32 numbers: a power of two, chosen so that the
#             sum of the squared errors is smaller. `round_e2m1` rounds to e2m1.
#           zh: >-
#             mxfp4 的规则把一块中最大的数缩放到 4 以上、8 以下，而 e2m1 最大的数是 6，所以有些数会被削到 6。请写出
#             `scale(block)`，一块有 32 个数：返回一个 2 的幂，让误差的平方和更小。`round_e2m1` 把数舍入到 e2m1。
#         fails: "squared error"
# ---
# %% stub-1
def unpack(packed, scales, whole):
    return np.zeros(2 * len(packed))  # yours


# %% stub-2
def scale(block):
    # yours: this is the rule of mxfp4
    return 2.0 ** (np.floor(np.log2(np.abs(block).max())) - 2)
