# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "Two parts of a number", zh: "把一个数拆成两部分"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Write `split(x)` for an array of fp32 numbers. It returns two arrays, `high` and `low`, of numbers that bf16
#             has, and their sum misses x by at most 2^-16 of its size. `to_bf16` rounds to bf16.
#           zh: >-
#             写出 `split(x)`，x 是 fp32 数组。返回两个数组 `high` 和 `low`，其中的数都是 bf16 能表示的，两者之和与 x 的差
#             不超过 x 的大小的 2^-16。`to_bf16` 把数舍入到 bf16。
#         fails: "left over"
#       2:
#         title: {en: "Distances in TF32", zh: "用 TF32 算距离"}
#         level: medium
#         minutes: 15
#         task:
#           en: >-
#             Squared distances of points by a product in TF32 were wrong because the products were far larger than the
#             distances. Write `squared_distances(points, multiply)` so that its errors are below 0.01.
#             `multiply(a, b)` is the product in TF32, and the only product that you may use. Distances do not change if
#             all points are moved.
#           zh: >-
#             用 TF32 乘法算点之间的距离平方会出错，因为乘积远大于距离本身。写出 `squared_distances(points, multiply)`，使误差
#             小于 0.01。`multiply(a, b)` 是 TF32 的乘法，也是唯一可用的乘法。所有点一起平移，距离不变。
#         fails: "are wrong"
# ---
# %% stub-1
def split(x):
    return to_bf16(x), 0 * x  # yours: what rounding left over


# %% stub-2
def squared_distances(points, multiply):
    # yours: as on the page, |x|^2 + |y|^2 - 2 x y, is not enough
    squares = (points**2).sum(axis=1)
    return squares[:, None] + squares - 2 * multiply(points, points.T)
