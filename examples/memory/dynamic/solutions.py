# ---
# jupyter:
#   cudatut:
#     title: {en: "Dynamic parallelism: solutions", zh: "动态并行：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     alone: false
# ---

# %% [markdown]
# Launches counted before they are made, a kernel that has to wait for others, and
# launches for those rows alone that are long.

# %% given-1
import numpy as np

y, x = np.mgrid[:64, :64]
pictures = {
    "one value": np.zeros((64, 64), "uint16"),
    "a corner": (x + y < 5).astype("uint16"),
    "stripes": (x % 2).astype("uint16"),
    "a disk": ((x - 20) ** 2 + (y - 30) ** 2 < 150).astype("uint16"),
    "an island": ((x // 3 == 10) & (y // 3 == 10)).astype("uint16"),
}


# %% solution-1
def launches(dwells, least):
    """How many tiles of the subdivision are divided."""
    side = len(dwells)
    edges = dwells[0], dwells[-1], dwells[:, 0], dwells[:, -1]
    same = all((edge == dwells[0, 0]).all() for edge in edges)
    if side <= least or same:
        return 0
    half = side // 2
    parts = [
        dwells[y : y + half, x : x + half] for y in (0, half) for x in (0, half)
    ]
    return 1 + sum(launches(part, least) for part in parts)


# %% check-1
import cudatut as ct

answers = {
    "one value": 0,
    "a corner": 3,
    "stripes": 21,
    "a disk": 0,
    "an island": 0,
}
found = [launches(picture, 8) for picture in pictures.values()]
ct.check(np.array(found), np.array(list(answers.values())), name="launches")

# %% given-2
import numpy as np

import cudatut as ct
from cudatut.book.memory.dynamic.linked import linked

# %% solution-2
kernels = """
#include "memory/dynamic/parts.cuh"

extern "C" __global__ void parent(int *parts, int count, int *total) {
  for (int k = 0; k < count; ++k)
    part<<<1, 1, 0, cudaStreamFireAndForget>>>(parts, k);
  // At the end of this grid, and of all that it launched.
  add<<<1, 1, 0, cudaStreamTailLaunch>>>(parts, count, total);
}
"""

# %% check-2
count = 64
squares = np.arange(count, dtype="int32") ** 2
if not ct.tool.running():  # which would have to follow the launches
    parent = linked(kernels, options=("-rdc=true",)).get_function("parent")
    for _ in range(3):
        parts, total = (ct.to_device(np.zeros(n, "int32")) for n in (count, 1))
        parent(parts, np.int32(count), total, grid=(1, 1), block=(1, 1, 1))
        ct.check(parts, squares, name="parts")
        ct.check(total, squares.sum(keepdims=True), name="total")

# %% given-3
import numpy as np

import cudatut as ct
from cudatut.book.memory.dynamic.linked import linked

rng = np.random.default_rng(0)
lengths = rng.integers(1, 33, 20_000)
lengths[rng.choice(20_000, 40, replace=False)] = 50_000

# %% solution-3
kernels = """
#include "memory/dynamic/parts.cuh"

extern "C" __global__ void parent(const unsigned int *x, const int *starts,
                                  int rows, int longest, unsigned int *sums,
                                  int *launched) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int from = starts[row], to = starts[row + 1];
  if (to - from > longest) {
    long_row<<<1, 256, 0, cudaStreamFireAndForget>>>(x, from, to, sums + row);
    if (cudaGetLastError() == cudaSuccess) {
      atomicAdd(launched, 1);
      return;
    }
  }
  unsigned int sum = 0;
  for (int k = from; k < to; ++k) sum += x[k];
  sums[row] = sum;
}
"""

# %% check-3
starts = np.concatenate([[0], np.cumsum(lengths)]).astype("int32")
values = rng.integers(0, 1000, int(starts[-1]), dtype="uint32")
right = np.add.reduceat(values, starts[:-1], dtype="uint32")
if not ct.tool.running():  # which would have to follow the launches
    parent = linked(kernels, options=("-rdc=true",)).get_function("parent")
    sums = ct.to_device(np.zeros(len(lengths), "uint32"))
    launched = ct.to_device(np.zeros(1, "int32"))
    x, d_starts = ct.to_device(values), ct.to_device(starts)
    rows, longest = np.int32(len(lengths)), np.int32(1000)
    parent(
        x, d_starts, rows, longest, sums, launched,
        grid=(ct.cdiv(len(lengths), 256), 1), block=(256, 1, 1),
    )  # fmt: skip
    ct.check(launched, np.array([40], "int32"), name="launches")
    ct.check(sums, right, name="sums")
