# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "What a cluster saves", zh: "线程块集群省下多少"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             A block computes `rows` x `columns` of C. In a cluster of `high` x `wide` blocks (blocks below each other, and side by
#             side) a part of A or B that several blocks need is fetched once for all of them. Write `from_l2(rows, columns, high,
#             wide, m, n, k)`: the bytes that all blocks together read from L2 for bf16 factors. The sizes are multiples of what a
#             cluster computes.
#           zh: >-
#             一个线程块计算 C 的 `rows` × `columns`。在 `high` × `wide` 个线程块（上下、左右）组成的集群里，几个线程块都需要的 A
#             或 B 的部分只取一次，供大家使用。写出 `from_l2(rows, columns, high, wide, m, n, k)`：操作数为 bf16 时，所有线程块
#             一共从 L2 读多少字节。各尺寸都是一个集群所计算部分的整数倍。
#         fails: "are wrong"
#       2:
#         title: {en: "An order of your own", zh: "自己的次序"}
#         level: medium
#         minutes: 30
#         task:
#           en: >-
#             Write `place_of` in CUDA C++: bands of `group` rows of tiles as before, but every second band runs from right to left.
#             So a band begins where the one before has ended, with columns of B that may still be in the L2 cache. Each tile must
#             come once, also where the last band has fewer rows. The check compares all places, then multiplies with your order.
#             Needs `sm_90a`.
#           zh: >-
#             用 CUDA C++ 写 `place_of`：和原来一样按 `group` 行分块为一带，但每隔一带从右往左走。这样，新的一带从上一带结束的
#             地方开始，那里的 B 列可能还在 L2 缓存里。每个分块恰好出现一次，最后一带行数较少时也一样。检查程序先比较所有位置，再按你的次序做乘法。
#             需要 `sm_90a`。
#         fails: "are wrong"
# ---
# %% stub-1
def from_l2(rows, columns, high, wide, m, n, k):
    """Bytes that all blocks read from L2."""
    blocks = m // rows * (n // columns)
    return blocks * (rows + columns) * k * 2  # yours: without any sharing


# %% stub-2
ORDER = """
__device__ __forceinline__ int2 place_of(int tile, int group, int tile_rows,
                                         int tile_columns) {
  return make_int2(0, 0);  // yours: x is the column, y the row of the tile
}
"""
