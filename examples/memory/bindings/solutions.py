# ---
# jupyter:
#   cudatut:
#     title: {en: "Python, C++ and back: solutions", zh: "Python 与 C++ 互相调用：参考答案"}
#     requires: sm_75
#     alone: false
# ---

# %% [markdown]
# A launch as OpenCL states it, calls that pay for their library, and a C
# function that is safe to call.

# %% given-1
source = """
__global__ void count(int *inside, int *all, int x, int y, int z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  int k = blockIdx.z * blockDim.z + threadIdx.z;
  atomicAdd(all, 1);
  if (i < x && j < y && k < z) atomicAdd(inside, 1);
}
"""
cases = {
    "one dimension": ((1000, 1, 1), (32, 1, 1)),
    "two dimensions": ((64, 48, 1), (16, 8, 1)),
    "no multiple": ((33, 10, 3), (8, 4, 2)),
}


# %% solution-1
def launch_of(sizes, locals_):
    """(grid, block), each with three numbers."""
    grid = tuple(-(-size // local) for size, local in zip(sizes, locals_))
    return grid, locals_


# %% check-1
import numpy as np

import cudatut as ct

count = ct.Kernel(source, "count")
for name, (sizes, locals_) in cases.items():
    grid, block = launch_of(sizes, locals_)
    inside, total = (ct.to_device(np.zeros(1, "int32")) for _ in range(2))
    count(inside, total, *sizes, grid=grid, block=block)
    padded = [ct.cdiv(s, b) * b for s, b in zip(sizes, locals_)]
    found = np.array([inside.get()[0], total.get()[0]], "int64")
    ct.check(found, np.array([np.prod(sizes), np.prod(padded)]), name=name)

# %% given-2
import numpy as np

# before_a, call_a, before_b, call_b
cases = [
    (800_000, 8, 2_500_000, 2),
    (0, 10, 100, 5),
    (100, 2, 50, 2),
    (100, 2, 200, 3),
    (100, 5, 101, 3),
]


# %% solution-2
def pays_after(before_a, call_a, before_b, call_b):
    """Calls after which b has taken less time than a; None for never."""
    later, saved = before_b - before_a, call_a - call_b
    if later + call_b < call_a:
        return 1
    return later // saved + 1 if saved > 0 else None


# %% check-2
import cudatut as ct

answers = [283334, 21, 1, -1, 1]
found = [pays_after(*case) for case in cases]
found = np.array([-1 if calls is None else calls for calls in found])
ct.check(found, np.array(answers), name="numbers of calls")

# %% given-3
import ctypes

import numpy as np

import cudatut as ct
from cudatut.book.memory.bindings.building import build

ct.activate()
library = ctypes.CDLL(str(build("lib")))


# %% solution-3
def saxpy_of_host(library, a, x, y):
    """y = a * x + y, of arrays of NumPy, by the C function."""
    for one in (x, y):
        if one.dtype != np.float32 or not one.flags.c_contiguous:
            raise ValueError("float32, and contiguous")
    if x.shape != y.shape:
        raise ValueError("two lengths")
    function, name = library.saxpy_of_host, library.saxpy_error
    array = ctypes.c_void_p
    function.argtypes = [ctypes.c_float, array, array, ctypes.c_int]
    function.restype = ctypes.c_int
    name.argtypes, name.restype = [ctypes.c_int], ctypes.c_char_p
    error = function(a, x.ctypes.data, y.ctypes.data, x.size)
    if error:
        raise RuntimeError(name(error).decode())


# %% check-3
for n in (1, 1000, 111_111):
    x, y = ct.rng(n).random((2, n), dtype="float32")
    expected = np.float32(2.5) * x + y
    saxpy_of_host(library, 2.5, x, y)
    ct.check(y, expected, name=f"n = {n}")
x, y = np.ones((2, 10), "float32")
refused = 0
for bad in (x.astype("float64"), np.ones(20, "float32")[::2], x[:5]):
    try:
        saxpy_of_host(library, 2.5, bad, y)
    except ValueError:
        refused += 1
ct.check(np.array([refused]), np.array([3]), name="refused")
