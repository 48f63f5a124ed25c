# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "A fair mean", zh: "怎样求平均才公平"}
#         level: easy
#         minutes: 10
#         given: ["twice as fast", "half as fast", "快一倍", "慢一半"]
#         task:
#           en: >-
#             `ours` and `theirs` are the times of two kernels on the same shapes. Write `times_as_fast(ours, theirs)`: one number that
#             says how many times as fast ours is. It must not depend on who is named first: the number the other way round has to be
#             1 divided by this one. And if a kernel is twice as fast as the other on one shape and half as fast on another shape, both are
#             equally fast. Why does the mean of the ratios not do it?
#           zh: >-
#             `ours` 和 `theirs` 是两个 kernel 在同样一些形状上的用时。写出 `times_as_fast(ours, theirs)`：用一个数表示 `ours` 的速度是 `theirs` 的多少倍。
#             这个数不能受先后次序影响：两者对调，必须得到倒数。如果一个 kernel 在一种形状上快一倍，在另一种形状上慢一半，
#             那么两者应当算一样快。为什么用比值的平均数做不到？
#         fails: "are wrong"
#       2:
#         title: {en: "Work that nobody needs", zh: "白做的计算"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             An m x n result is computed in whole tiles of 128 rows and `columns` columns, by `sms` SMs, a tile each at a time. Some
#             tiles reach beyond the edge, and in the last round some SMs have no tile. Write `useful(m, n,
#             columns, sms)`: the share of what all SMs could compute in all rounds that belongs to the result. Then
#             `best(m, n, sms)`: of 64, 128, 192 and 256 columns those with the largest share; of equal ones the most columns.
#           zh: >-
#             m x n 的结果由 `sms` 个 SM 按整个分块计算，每个分块 128 行、`columns` 列，每个 SM 一次算一个。有些分块超出边界，
#             最后一轮里有些 SM 没有分块可算。写出 `useful(m, n, columns, sms)`：全部 SM 在所有轮次里能做的计算，真正用于结果的占
#             多少。再写出 `best(m, n, sms)`：在 64、128、192、256 列中取占比最大的；占比相同时取列数最多的。
#         fails: "are wrong"
# ---
# %% stub-1
def times_as_fast(ours, theirs):
    """How many times as fast ours is, over all shapes."""
    return np.mean(theirs / ours)  # yours: this depends on who comes first


# %% stub-2
def useful(m, n, columns, sms):
    """Share of what could be computed that belongs to the result, 0 to 1."""
    return 1.0  # yours


def best(m, n, sms):
    """64, 128, 192 or 256 columns."""
    return 256  # yours
