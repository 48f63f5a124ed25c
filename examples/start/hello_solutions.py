# ---
# jupyter:
#   cudatut:
#     title: {en: "Hello: solutions", zh: "环境与第一声问候：参考答案"}
#     requires: sm_75
#     alone: false
#     timeout_s: 120
# ---
# %% [markdown]
# Solutions to the two exercises of the chapter on the environment.

# %% setup
import numpy as np
import pycuda.autoprimaryctx  # noqa: F401
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

import cudatut as ct

# %% solution-1
who = SourceModule("""
__global__ void who(int *out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = 10 * blockIdx.x + threadIdx.x;
}
""").get_function("who")

out = ct.empty(15, "int32")
who(out, block=(5, 1, 1), grid=(3, 1))
ct.check(out, np.array([10 * b + t for b in range(3) for t in range(5)]), name="who")

# %% child
CHILD = r'''
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

talk = SourceModule("""
#include <stdio.h>
__global__ void talk() { printf("%u\\n", blockIdx.x * blockDim.x + threadIdx.x); }
""").get_function("talk")
#SETTING
talk(block=(256, 1, 1), grid=(256, 1))
cuda.Context.synchronize()
'''


def lines(setting):
    """How many of the printed lines arrive when `setting` runs before the launch."""
    child = ct.isolated(CHILD.replace("#SETTING", setting))
    assert child.returncode == 0, child.stderr
    return len(child.stdout.splitlines())


# %% solution-2
ct.facts(
    "printf buffer",
    {
        "default_size": (cuda.Context.get_limit(cuda.limit.PRINTF_FIFO_SIZE), "B"),
        "lines_printed": 256 * 256,
        "lines_arrived": lines(""),
    },
)
arrived = lines("cuda.Context.set_limit(cuda.limit.PRINTF_FIFO_SIZE, 64 << 20)")
ct.check(np.array([arrived]), np.array([256 * 256]), name="lines, 64 MiB buffer")
