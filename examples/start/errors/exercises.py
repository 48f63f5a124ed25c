# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "A launch for every length", zh: "由元素个数确定启动参数"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Complete `launch_shape`: it returns the grid and the block for `n` elements, one thread for each element,
#             with no block more than needed. For `n = 0` it returns `None`, because a launch of 0 blocks is refused.
#             The check adds two vectors of each length in `LENGTHS` with your grid and block.
#           zh: >-
#             补全 `launch_shape`：为 `n` 个元素返回网格和线程块的大小，每个元素一个线程，线程块一个也不能多。
#             `n` 为 0 时返回 `None`，因为启动 0 个线程块会报错。检查程序会用你返回的大小，
#             对 `LENGTHS` 中的每个长度做一次向量加法。
#         fails: "check blocks, n = 1"
#       2:
#         title: {en: "The guilty launch", zh: "是哪一次启动出的错"}
#         level: medium
#         minutes: 15
#         task:
#           en: >-
#             `PROGRAM` prepares three launches in the list `launches`. The one with the number `guilty` writes far
#             outside its array. Complete `find_guilty`: it makes the launches and returns the number of the one that is
#             at fault, counted from 0. Your function may use what `PROGRAM` imports. The check puts it behind
#             `PROGRAM`, runs both in a new process, and does so for `guilty` = 1, 0 and 2.
#           zh: >-
#             `PROGRAM` 准备了三次启动，放在列表 `launches` 里，其中编号为 `guilty` 的那次会写到数组之外很远的地方。
#             补全 `find_guilty`：依次启动，并返回出错的那次启动的编号（从 0 数起）。你的函数可以使用
#             `PROGRAM` 导入的模块。检查程序会把这个函数接在 `PROGRAM` 后面，在新的进程里运行，`guilty` 依次取 1、0、2。
#         fails: "got .*-1"
# ---
# %% stub-1
def launch_shape(n, block=256):
    """Grid and block for n elements, or None if n is 0."""
    return (10, 1), (block, 1, 1)  # yours: enough blocks for n elements


# %% stub-2
def find_guilty(launches):
    """Number of the launch that is at fault, counted from 0."""
    for launch in launches:
        launch()
    return None  # yours: which one was it?
