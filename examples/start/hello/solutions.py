# ---
# jupyter:
#   cudatut:
#     title: {en: "Hello: solutions", zh: "环境与第一个程序：参考答案"}
#     requires: sm_75
#     alone: false
#     timeout_s: 120
# ---
# %% [markdown]
# Solutions to the exercises of the first chapter. Each check runs a program in a process of its own and reads what it prints.

# %% given-1
PROGRAM = """
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

squares = SourceModule({source!r}).get_function("squares")
squares(grid=(1, 1), block=(1, 1, 1))
cuda.Context.synchronize()
"""

# %% solution-1
SOURCE = r"""
#include <stdio.h>

__global__ void squares() {
  for (int i = 1; i <= 10; ++i) printf("%d %d\n", i, i * i);
}
"""

# %% check-1
import numpy as np
import cudatut as ct

child = ct.isolated(PROGRAM.format(source=SOURCE))
assert child.returncode == 0, child.stderr
lines = child.stdout.splitlines()
ct.check(np.array([len(lines)]), np.array([10]), name="lines")
numbers = [[int(word) for word in line.split()] for line in lines]
ct.check(
    np.array(numbers),
    np.array([[i, i * i] for i in range(1, 11)]),
    name="numbers",
)

# %% given-2
EXPECTED = 4006945921  # state after 50,000,000 steps, computed on the CPU

# %% solution-2
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
cuda.Context.synchronize()
os._exit(0)  # ends the program at once
'''

# %% check-2
import numpy as np
import cudatut as ct

child = ct.isolated(PROGRAM)
assert child.returncode == 0, child.stderr
lines = child.stdout.splitlines()
ct.check(np.array([len(lines)]), np.array([1]), name="lines")
ct.check(np.array([int(lines[0])]), np.array([EXPECTED]), name="number")

# %% given-3
LINES = 65_536  # as many as threads are started

# %% solution-3
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
cuda.Context.set_limit(cuda.limit.PRINTF_FIFO_SIZE, 64 << 20)
module.get_function("line")(grid=(256, 1), block=(256, 1, 1))
cuda.Context.synchronize()
'''

# %% check-3
import numpy as np
import cudatut as ct

child = ct.isolated(PROGRAM)
assert child.returncode == 0, child.stderr
lines = child.stdout.splitlines()
ct.check(np.array([len(lines)]), np.array([LINES]), name="lines")
ct.check(np.array([len(set(lines))]), np.array([1]), name="kinds of line")
