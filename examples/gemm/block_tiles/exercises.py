# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "The best shape for a budget", zh: "给定预算下的最佳形状"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Write `best_tile(registers)`: the thread tile (rows, columns) with the most FMAs per word from
#             shared memory. Its edges are powers of two, rows >= columns, and the sums and operands together
#             use at most so many registers. What does a budget of 100 allow, and one of 224?
#           zh: >-
#             写出 `best_tile(registers)`：返回线程分块的形状（行数，列数），要求从共享内存读来的每个元素参与的 FMA 最多。
#             边长是 2 的幂，行数不小于列数，累加值与操作数一共最多用 `registers` 个寄存器。预算是 100 个时是什么形状？
#             224 个呢？
#         fails: "24 registers"
#       2:
#         title: {en: "Columns that are apart", zh: "隔开的列"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             The eight columns of a thread need not be neighbors. Give each lane its columns so that a warp
#             touches 32 sectors when it stores a row of results, instead of 256, and needs 8 passes to read
#             its words of B. As a rung in a file of your own, `python -m cudatut try gemm my_sgemm.cu` times it.
#           zh: >-
#             一个线程的八列不必相邻。请给每个 lane 分配八列，让线程束写出一行结果时只碰到 32 个扇区，而不是
#             256 个，读 B 时只走 8 趟。写成 kernel，放进单独的文件，就可以用
#             `python -m cudatut try gemm my_sgemm.cu` 计时。
#         fails: "sectors stored, passes read"
# ---
# %% stub-1
def best_tile(registers):
    """(rows, columns) of the thread tile with the most FMAs per word."""
    return 1, 1  # yours


# %% stub-2
def columns(lane):
    """The eight columns, 0 to 127, of a lane's results, in order."""
    return lane % 16 * 8 + np.arange(8)  # yours: these are neighbors
