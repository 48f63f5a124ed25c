# ---
# jupyter:
#   cudatut:
#     title: {en: "Errors: solutions", zh: "错误：参考答案"}
#     requires: sm_75
#     alone: false
#     timeout_s: 180
#     sizes:
#       LENGTHS: [[1, 31, 33, 50000, 1111111], [1, 31, 33, 5000]]
# ---
# %% [markdown]
# A launch that fits every length. Rounding up gives the number of blocks: add one less than a block, then divide.

# %% given-1
LENGTHS = (1, 31, 33, 50_000, 1_111_111)


# %% solution-1
def launch_shape(n, block=256):
    """Grid and block for n elements, or None if n is 0."""
    if n == 0:
        return None
    return ((n + block - 1) // block, 1), (block, 1, 1)


# %% check-1
import numpy as np
import cudatut as ct

add = ct.Kernel(
    "__global__ void add(const float *x, const float *y, float *out, int n) {"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;"
    "  if (i < n) out[i] = x[i] + y[i]; }",
    "add",
)
for n in LENGTHS:
    x, y = (ct.rng(seed).standard_normal(n, dtype="float32") for seed in (1, 2))
    out = ct.empty(n, "float32")
    grid, block = launch_shape(n)
    add(ct.to_device(x), ct.to_device(y), out, n, grid=grid, block=block)
    ct.check(out, x + y, name=f"n = {n}")
    ct.check(
        np.array([grid[0]]),
        np.array([ct.cdiv(n, block[0])]),
        name=f"blocks, n = {n}",
    )
ct.check(
    np.array([launch_shape(0) is None]), np.array([True]), name="None for n = 0"
)

# %% [markdown]
# The guilty one of three launches. While you look for an error, wait after every launch: then no other launch can be
# the cause.

# %% given-2
import pycuda.driver as cuda

PROGRAM = '''
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

fill = SourceModule("""
__global__ void fill(int *out, long long far) { out[far] = 1; }
""").get_function("fill")
arrays = [cuda.mem_alloc(4) for _ in range(3)]
far = [2**40 if k == guilty else 0 for k in range(3)]
launches = [
    lambda k=k: fill(arrays[k], np.int64(far[k]), block=(1, 1, 1))
    for k in range(3)
]
'''


# %% solution-2
def find_guilty(launches):
    """Number of the launch that is at fault, counted from 0."""
    for number, launch in enumerate(launches):
        try:
            launch()
            cuda.Context.synchronize()
        except cuda.Error:
            return number
    return None


# %% check-2
import inspect

import numpy as np
import cudatut as ct

answers = []
for guilty in (1, 0, 2):
    lines = [f"guilty = {guilty}", PROGRAM, inspect.getsource(find_guilty)]
    child = ct.isolated(
        "\n".join([*lines, "print(find_guilty(launches), flush=True)"])
    )
    last = child.stdout.split()[-1:]
    answers.append(int(last[0]) if last and last[0].isdigit() else -1)
ct.check(np.array(answers), np.array([1, 0, 2]), name="guilty launches")
