# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Which group", zh: "属于哪个组"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Tiles have 128 rows and 256 columns. The tiles of group 0 come first, then those of group 1, and so on; inside
#             of a group first all tiles below each other, then the next column of tiles. Write `place(ends, n, tile)`: the
#             group of a tile, and the row and the column of the result where the tile begins. `ends` says where the rows
#             of each group end, and a group may have none. The check wants every element of the result in one tile, which
#             belongs to the group of its row.
#           zh: >-
#             分块有 128 行、256 列。先是第 0 组的分块，再是第 1 组的，依此类推；组内先从上到下走完一列分块，再到下一列。
#             写出 `place(ends, n, tile)`：给定一个分块，返回所属的组，以及在结果里从哪一行、哪一列开始。`ends` 记录每组的行到
#             哪里结束，有的组可能没有行。检查程序要求结果的每个元素恰好属于一个分块，而且该分块属于这一行所在的组。
#         fails: "are wrong"
#       2:
#         title: {en: "Where the rows end", zh: "各组行的边界"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             Write the kernel `count_rows`, which makes `ends` on the GPU. `expert[i]` is the expert that row i has chosen, and
#             rows are not sorted yet. One block counts the rows of each expert and writes ends[g], the rows of the experts 0 to g
#             together. There are at most 1024 experts; the block may have fewer threads.
#           zh: >-
#             编写 kernel `count_rows`，在 GPU 上算出 `ends`。`expert[i]` 是第 i 行所选的专家，各行还没有排序。一个线程块统计
#             每个专家的行数，并写出 ends[g]，值为专家 0 到 g 的行数之和。专家最多 1024 个，线程数可能比专家少。
#         fails: "are wrong"
# ---
# %% stub-1
def place(ends, n, tile):
    """Group, first row and first column of a tile."""
    return 0, 0, 0  # yours: this is tile 0, if group 0 has rows


# %% stub-2
SOURCE = """
extern "C" __global__ void count_rows(const int *expert, int rows, int *ends,
                                      int experts) {
  __shared__ int count[1024];
  for (int g = threadIdx.x; g < experts; g += blockDim.x) count[g] = 0;
  __syncthreads();
  // yours: count the rows, then add up
  for (int g = threadIdx.x; g < experts; g += blockDim.x) ends[g] = count[g];
}
"""
