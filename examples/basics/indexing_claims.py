# ---
# jupyter:
#   cudatut:
#     title: {en: "Nine index formulas: claims", zh: "九个索引公式：说法的检验"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
#     sizes:
#       blocks: [100000, 70]
#       EXTENTS: [[1, 2, 3], [1, 3]]
# ---

# %% [markdown]
# What CUDATutorial, chapter 05, says about grids, and its nine formulas as it
# writes them.

# %% limits
import numpy as np

import cudatut as ct

count_blocks = ct.Kernel("basics/indexing.cu", "count_blocks")
blocks = 100_000
threads = 1024
ran, present = (ct.to_device(np.zeros(1, "int32")) for _ in range(2))
sm_used = ct.to_device(np.zeros(1024, "int32"))
count_blocks(ran, present, sm_used, grid=blocks, block=threads)
ct.check(ran, np.array([blocks], "int32"), name="blocks that ran")
ct.check(present, np.array([threads], "int32"), name="threads of a block")
sms = int(sm_used.get().sum())

# %% grid-limits
example = 65_535 * 512
ct.claim(
    id="grid-limits",
    source="CUDATutorial 05",
    statement={
        "en": "A grid has, for example, 65535 blocks of 512 threads",
        "zh": "一个网格例如有 65535 个线程块，每块 512 个线程",
    },
    predicted=example,
    measured=blocks * threads,
    unit="threads",
    verdict="depends" if blocks * threads > example else "confirmed",
)

# %% grid-within-sm
ct.claim(
    id="grid-within-sm",
    source="CUDATutorial 05",
    statement={
        "en": "An SM is divided into several grids, for example 2 or 3",
        "zh": "一个 SM 划分成若干个网格，例如 2 到 3 个",
    },
    predicted=1,
    measured=sms,
    unit="SMs that one grid used",
    verdict="refuted" if sms > 1 else "confirmed",
)

# %% [markdown]
# Its formulas are written out, not nested. Each thread adds 1 to the place that the
# tutorial's formula names; every place must end as 1.

# %% formulas
from itertools import product

B_X, B_XY = "blockDim.x", "(blockDim.x * blockDim.y)"
B_XYZ = "(blockDim.x * blockDim.y * blockDim.z)"
ROW = "threadIdx.y * blockDim.x"
LAYER = f"threadIdx.z * {B_XY}"
blocks_of = {
    1: "blockIdx.x",
    2: "(blockIdx.x + blockIdx.y * gridDim.x)",
    3: "(blockIdx.x + blockIdx.y * gridDim.x"
    " + gridDim.x * gridDim.y * blockIdx.z)",
}
threads_of = {
    1: f"* {B_X} + threadIdx.x",
    2: f"* {B_XY} + {ROW} + threadIdx.x",
    3: f"* {B_XYZ} + {LAYER} + {ROW} + threadIdx.x",
}
SOURCE = """
__global__ void tally(int *count) { atomicAdd(&count[FORMULA], 1); }
"""
EXTENTS = (1, 2, 3)

wrong = 0
for grid_dims, block_dims in product((1, 2, 3), repeat=2):
    formula = f"{blocks_of[grid_dims]} {threads_of[block_dims]}"
    tally = ct.Kernel(SOURCE, "tally", defines={"FORMULA": formula})
    for grid in product(EXTENTS, repeat=grid_dims):
        for block in product(EXTENTS, repeat=block_dims):
            total = int(np.prod(grid) * np.prod(block))
            count = ct.to_device(np.zeros(total, "int32"))
            tally(count, grid=grid, block=block)
            wrong += int((count.get() != 1).sum())
ct.check(np.array([wrong]), np.zeros(1, int), name="ids missing or doubled")

# %% nine-formulas
ct.claim(
    id="nine-formulas",
    source="CUDATutorial 05",
    statement={
        "en": "The nine formulas give every thread of a launch its own id",
        "zh": "九个公式给一次启动中的每个线程一个唯一的编号",
    },
    predicted=0,
    measured=wrong,
    unit="ids missing or doubled",
    verdict="refuted" if wrong else "confirmed",
)
