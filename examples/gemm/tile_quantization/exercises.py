# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "A tile for 2176", zh: "为 2176 选一个分块"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `busy(tile, m, n)`: the work of the busiest SM in results of C, if each SM computes one tile
#             after the other. Divide it by `tile.rate`, the share of the FMA limit that the tile reaches in a full
#             wave. Which tile does it choose for a C of 2176 x 2176, and is that one the fastest?
#           zh: >-
#             写出 `busy(tile, m, n)`：假定每个 SM 逐个计算分块，求最忙的 SM 要算多少个 C 的结果，再除以
#             `tile.rate`，即满波时这种分块能达到 FMA 上限的几成。C 为 2176 × 2176 时选出的是哪种分块？这种分块最快吗？
#         fails: "work of the busiest SM"
#       2:
#         title: {en: "The schedule on paper", zh: "推演 stream-K 的调度"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Write `schedule(tiles, steps, blocks)`: for each block of stream-K a list of its pieces (tile, first
#             step, end), in the order in which it computes them. The check wants each step of each tile exactly
#             once, the same number of steps for all blocks, give or take one, and at most one partial result
#             per block.
#           zh: >-
#             写出 `schedule(tiles, steps, blocks)`：对 stream-K 的每个线程块，按计算的先后列出各段（分块，第一步，
#             终点）。检查程序要求每个分块的每一步恰好出现一次，各线程块的步数最多差一，而且每个线程块至多留下一份部分和。
#         fails: "4 blocks, equal"
# ---
# %% stub-1
def busy(tile, m, n):
    """Work of the busiest SM: results of C / the rate of a full wave."""
    return m * n / SMS / tile.rate  # yours: as if tiles could be cut


# %% stub-2
def schedule(tiles, steps, blocks):
    """For each block its pieces: (tile, first step, end), in order."""
    return [  # yours: these are whole tiles
        [(tile, 0, steps) for tile in range(block, tiles, blocks)]
        for block in range(blocks)
    ]
