# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "How many launches?", zh: "要启动多少次"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             `dwells` is a square picture. Write `launches(dwells, least)`: how
#             often the subdivision of this chapter launches a kernel in it, if
#             it begins with the whole picture as one tile and halves sides down
#             to `least`. A tile of `least` pixels launches nothing, nor does one
#             whose border is all one value. Predict first: how many at most, for
#             64 pixels and `least` 8?
#           zh: >-
#             `dwells` 是一张正方形图片。写 `launches(dwells, least)`：把整张图当作一块
#             开始，每次边长减半，直到 `least`，本章的分块做法要启动多少次 kernel？边长
#             不大于 `least` 的块不启动，边界上全是同一个值的块也不启动。先预测：64 像素、
#             `least` 为 8 时最多启动多少次？
#         fails: "launches"
#       2:
#         title: {en: "After the others", zh: "等其他 kernel 结束"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             `parent` launches 64 kernels `part`, which write `parts`, then `add`,
#             which adds them up (`parts.cuh`). The total is wrong. Mend it inside `parent`: the kernels
#             that write may run at the same time, and the one that adds must not
#             begin before all of them have ended. Change no other kernel.
#           zh: >-
#             `parent` 启动 64 个 `part` 写 `parts`，再启动 `add` 求总和（`parts.cuh`），得到的
#             总和却不对。只改 `parent`：写 `parts` 的 kernel 可以同时运行，求总和的那个
#             必须等它们全部结束才开始。其他 kernel 不许改。
#         fails: "total"
#       3:
#         title: {en: "Launch where it pays", zh: "划算时才启动"}
#         level: hard
#         minutes: 30
#         task:
#           en: >-
#             Each of 20,000 rows has a length of 1 to 32, some of 50,000. The stub
#             launches a block for every row, which is too many. Write `parent`: a
#             row longer than `longest` gets a launch of `long_row` (`parts.cuh`), the
#             others are added up by their own thread; add 1 to `launched[0]` for
#             each launch.
#             A launch that is refused must not lose its row.
#           zh: >-
#             20,000 行里，大多数的长度是 1 到 32，少数是 50,000。给出的 `parent` 为每
#             一行都启动一个线程块，次数太多。改写 `parent`：长于 `longest` 的行才启动
#             `long_row`（`parts.cuh`），其余的行由各自的线程求和；每启动一次，给 `launched[0]` 加 1。
#             启动被拒绝时，那一行也不能漏掉。
#         fails: "launches"
# ---


# %% stub-1
def launches(dwells, least):
    """How many tiles of the subdivision are divided."""
    return 0  # yours


# %% stub-2
kernels = """
#include "memory/dynamic/parts.cuh"

extern "C" __global__ void parent(int *parts, int count, int *total) {
  // yours: `add` begins too early
  for (int k = 0; k < count; ++k)
    part<<<1, 1, 0, cudaStreamFireAndForget>>>(parts, k);
  add<<<1, 1, 0, cudaStreamFireAndForget>>>(parts, count, total);
}
"""

# %% stub-3
kernels = """
#include "memory/dynamic/parts.cuh"

extern "C" __global__ void parent(const unsigned int *x, const int *starts,
                                  int rows, int longest, unsigned int *sums,
                                  int *launched) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  // yours: only where the row is longer than `longest`
  long_row<<<1, 256, 0, cudaStreamFireAndForget>>>(
      x, starts[row], starts[row + 1], sums + row);
  atomicAdd(launched, 1);
}
"""
