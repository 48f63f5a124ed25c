# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "What a cluster saves", zh: "线程块集群能少读多少数据"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             A block computes `rows` x `columns` of C. In a cluster of `high` x `wide` blocks (blocks below each other, and side by
#             side) a part of A or B that several blocks need is fetched once for all of them. Write `from_l2(rows, columns, high,
#             wide, m, n, k)`: the bytes that all blocks together read from L2 for bf16 factors. The sizes are multiples of what a
#             cluster computes.
#           zh: >-
#             一个线程块计算 C 中 `rows` × `columns` 个结果。一个集群由 `high` × `wide` 个线程块组成，上下 `high` 个，左右 `wide` 个；
#             A 或 B 中几个线程块都需要的部分，整个集群只取一次。请编写 `from_l2(rows, columns, high, wide, m, n, k)`：
#             操作数为 bf16 时，返回所有线程块一共从 L2 读取的字节数。各尺寸都是一个集群所计算部分的整数倍。
#         fails: "are wrong"
#       2:
#         title: {en: "An order of your own", zh: "自己设计分块次序"}
#         level: medium
#         minutes: 30
#         task:
#           en: >-
#             Write `place_of` in CUDA C++: bands of `group` rows of tiles as before, but every second band runs from right to left.
#             So a band begins where the one before has ended, with columns of B that may still be in the L2 cache. Each tile must
#             come once, also where the last band has fewer rows. The check compares all places, then multiplies with your order.
#             Needs `sm_90a`.
#           zh: >-
#             请用 CUDA C++ 编写 `place_of`：和原来一样，每 `group` 行分块为一带，但每隔一带改为从右往左。这样，下一带就从上一带
#             结束的地方开始，要用的 B 的列可能还在 L2 缓存里。每个分块必须恰好出现一次，最后一带的行数较少时也是如此。
#             检查程序先比较所有位置，再按你的次序做乘法。
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
