# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Blocks of one warp", zh: "只有一个线程束的线程块"}
#         level: easy
#         minutes: 15
#         task:
#           en: >-
#             Some tutorials always use blocks of 32 threads. The kernel that is given needs few registers and no shared
#             memory, so only two of the four limits matter. Write occupancy(threads): resident warps divided by the most
#             that the SM holds, from 0 to 1. Before you run it, predict the order of the times for blocks of 32, 64, 128,
#             256 and 1024 threads. The check compares your function with the driver, then runs the kernel with each of
#             these blocks and times it. Does occupancy explain the times?
#           zh: >-
#             有的教程一律使用 32 个线程的线程块。已给出的 kernel 用的寄存器很少，也不用共享内存，所以四种限制里只有两种起作用。
#             请写出 occupancy(threads)：驻留的线程束数除以 SM 的上限，结果在 0 到 1 之间。运行之前先预测：
#             线程块取 32、64、128、256、1024 个线程时，用时从短到长怎样排？检查程序把你的函数与驱动的答案比较，
#             再用这几种线程块运行 kernel 并计时。占用率能解释这些时间吗？
#         fails: "32 threads"
#       2:
#         title: {en: "A block for a table", zh: "带表格的线程块"}
#         level: medium
#         minutes: 30
#         task:
#           en: >-
#             Each block of look_up first copies a table of 24 KiB to shared memory, so small blocks fill an SM with copies
#             of the table. Write best_block(registers, shared): the best occupancy that any block of whole warps reaches,
#             and the fewest threads per block that reach it. registers is per thread, shared is per block in bytes. The
#             check asks the driver about all 32 block sizes, then runs the kernel with your block. Work the answer out
#             by hand for an H200 first.
#           zh: >-
#             look_up 的每个线程块先把一张 24 KiB 的表复制到共享内存，所以线程块小了，SM 就会被一份份相同的表占满。
#             请写出 best_block(registers, shared)：由整数个线程束组成的线程块能达到的最高占用率，以及达到它的最少线程数。
#             registers 是每个线程的寄存器数，shared 是每个线程块的共享内存字节数。检查程序向驱动询问全部 32 种大小，
#             再用你给出的线程块运行 kernel。请先为 H200 手算一次答案。
#         fails: "best occupancy"
# ---


# %% stub-1
def occupancy(threads):
    """Resident warps of an SM, divided by the most that it holds."""
    return 0.0  # yours: most_blocks and most_warps are given


# %% stub-2
def best_block(registers, shared):
    """(occupancy, threads): the best, and the smallest block for it."""
    return 0.0, 32  # yours: try blocks of 32, 64, ..., 1024 threads
