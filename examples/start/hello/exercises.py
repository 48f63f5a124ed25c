# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Ten squares", zh: "十个平方数"}
#         level: warm-up
#         minutes: 5
#         task:
#           en: >-
#             Complete the kernel so that its one thread prints ten lines, from "1 1" to "10 100": a number
#             and its square. The check runs your kernel in a program of its own and compares all lines.
#           zh: >-
#             补全 kernel，让唯一的那个线程打印十行，从 "1 1" 到 "10 100"：每行是一个数及其平方。
#             检查程序会另起一个程序来运行你的 kernel，逐行比较。
#         fails: "check lines"
#       2:
#         title: {en: "The line that never arrives", zh: "始终没有出现的那一行"}
#         level: easy
#         minutes: 5
#         task:
#           en: >-
#             The kernel in this program computes for a while, then prints one number. The program ends before
#             anyone sees it. Add one line, so that the number is printed. Leave the last line where it is.
#           zh: >-
#             这个程序里的 kernel 要计算一会儿，然后打印一个数。可是没等这个数显示出来，程序就结束了。
#             添加一行，让这个数能够打印出来。最后一行保持不动。
#         fails: "check lines"
#       3:
#         title: {en: "Lose no line", zh: "一行也不丢"}
#         level: easy
#         minutes: 5
#         task:
#           en: >-
#             This launch starts 65,536 threads, and each prints one line. A kernel writes its lines into a
#             buffer of fixed size. So many lines come faster than the host can take them out, so some are
#             lost. Make the buffer larger before the launch: `cuda.Context.set_limit(limit, size)`, with the
#             limit `cuda.limit.PRINTF_FIFO_SIZE` and the size in bytes. A line may need a few hundred bytes.
#           zh: >-
#             这次启动有 65,536 个线程，每个打印一行。kernel 打印的内容先写入一个大小固定的缓冲区。这么多行一下子写进来，
#             主机来不及取走，就会丢失一部分。请在启动之前把缓冲区调大：`cuda.Context.set_limit(limit, size)`，
#             其中 limit 取 `cuda.limit.PRINTF_FIFO_SIZE`，size 以字节为单位。一行可能要占几百字节。
#         fails: "check lines"
# ---
# %% stub-1
SOURCE = r"""
#include <stdio.h>

__global__ void squares() {
  printf("1 1\n");  // yours: ten lines, a number and its square
}
"""

# %% stub-2
PROGRAM = r'''
import os
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

module = SourceModule(r"""
#include <stdio.h>

__global__ void random_number() {
  unsigned int state = 1;
  for (int i = 0; i < 50000000; ++i) state = 1664525u * state + 1013904223u;
  printf("%u\n", state);
}
""")
module.get_function("random_number")(grid=(1, 1), block=(1, 1, 1))
# yours: one line
os._exit(0)  # ends the program at once
'''

# %% stub-3
PROGRAM = r'''
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

module = SourceModule(r"""
#include <stdio.h>

__global__ void line() {
  printf("a line\n");
}
""")
# yours: one line
module.get_function("line")(grid=(256, 1), block=(256, 1, 1))
cuda.Context.synchronize()
'''
