# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "The pitch that helps", zh: "有用的行步长"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             In `block_tile_2d` the tile of A is not turned: `As[128][pitch]`. A lane reads its eight rows two depths
#             at a time if rows begin at even words, else one at a time, and stores `As[t // 8][t % 8]`, four
#             times 32 neighbors of the tile. Count the passes of a warp in a step of depth 8. Which of the
#             pitches 8, 9, 10 and 12 is best, and what is wrong with "plus one"?
#           zh: >-
#             `block_tile_2d` 没有转置 A 的分块，而是存成 `As[128][行步长]`。一个 lane 读八行；每行的起始位置都是偶数时，
#             一次读相邻的两个 k，否则一次读一个。写入的位置是 `As[t // 8][t % 8]`，共四次，每次写分块里相邻的 32 个元素。
#             求深度 8 的一步里一个线程束要走几趟。行步长 8、9、10、12 中哪个最好？常见的“加一”错在哪里？
#         fails: "passes to read A"
#       2:
#         title: {en: "Where padding fails", zh: "填充不起作用的情形"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             With tiles 16 deep, four neighboring lanes can bring 16 words of a row of A. They store to the same
#             column of the turned tile, at depths 0, 4, 8 and 12. No pitch that is a multiple of 4 keeps them
#             apart. Write `swapped(inner, row)`: the place of a row at a depth, by an XOR, so that a store takes
#             one pass. A place must be used once, and four rows must stay neighbors, so that they can be read at
#             once. As a rung, `python -m cudatut try gemm my_sgemm.cu` times it.
#           zh: >-
#             分块深 16 时，可以让相邻四个 lane 搬 A 一行的 16 个元素，写到转置分块的同一列，k 为 0、4、8、12。
#             行步长只要是 4 的倍数，就不能把这四个 lane 完全错开。写出 `swapped(inner, row)`：用异或算出某个 k 上
#             某一行的位置，让一次写入只走一趟。每个位置只能用一次，四行要保持相邻，才能一次读出。写成 kernel 以后，
#             可以用 `python -m cudatut try gemm my_sgemm.cu` 计时。
#         fails: "passes of one store"
# ---
# %% stub-1
def reads_of_a(pitch):
    """Passes of a warp to read A in a step of depth 8."""
    return 0  # yours: rows ROWS to ROWS + 7 of each lane


def stores_of_a(pitch):
    """Passes of a warp for its four stores of A in a step."""
    return 4  # yours: this is right for rows of 8 words only


# %% stub-2
def swapped(inner, row):
    """Place of a row, 0 to 127, of the turned tile at depth inner."""
    return row  # yours: an XOR that depends on inner
