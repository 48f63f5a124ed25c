# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "As wide as each row allows", zh: "逐行选择读取宽度"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             `load4` decides for the whole matrix. It could decide for each row: four words where the row
#             begins at a multiple of 16 bytes, two at a multiple of 8, else one (`width`). Compute how many
#             loads 8 words of a row take on average over 8 rows, for rows of 4096 to 4099 words.
#           zh: >-
#             `load4` 对整个矩阵只判断一次，其实也可以逐行判断：行首地址是 16 字节的整数倍，就一次读四个元素；是 8 字节的
#             整数倍，就读两个；否则只读一个（`width`）。请算出每行有 4096 到 4099 个元素时，读一行里的 8 个元素
#             平均要读几次（对 8 行求平均）。
#         fails: "loads"
#       2:
#         title: {en: "Does A have to be turned?", zh: "A 必须转置吗？"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             A tile of A that is not turned has four depths of a row side by side, and they can be read by
#             four as well. Count the passes that a warp needs for its words of A in one step, turned and not
#             turned. Does turning save passes? As a rung, `python -m cudatut try gemm unturned.cu` times it.
#           zh: >-
#             A 的分块不转置时，同一行里 k 相邻的四个元素在共享内存里也相邻，同样可以一次读四个。请数出一步里一个线程束读 A
#             要几趟，转置时和不转置时各是多少。转置能减少趟数吗？写成 kernel 之后，可以用
#             `python -m cudatut try gemm unturned.cu` 计时。
#         fails: "passes to read A"
# ---
# %% stub-1
def loads_per_row(pitch, rows=8):
    """Mean number of loads for 8 words of a row, over so many rows."""
    return 8.0  # yours: word by word


# %% stub-2
def passes_to_read(turned):
    """Passes of a warp to read its words of A for one step of depth 8."""
    if turned:  # tile[depth][row]: four rows at a time, at one depth
        return BK * sum(passes(ROWS + r, 4) for r in range(0, TM, 4))
    return 0  # yours: tile[row][depth], four depths at a time, of one row
