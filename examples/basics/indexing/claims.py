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

count_blocks = ct.Kernel("basics/indexing/indexing.cu", "count_blocks")
threads = 1024


def sms_of(blocks):
    """Launch so many blocks of 1024 threads; on how many SMs did they run?"""
    ran, present = (ct.to_device(np.zeros(1, "int32")) for _ in range(2))
    sm_used = ct.to_device(np.zeros(1024, "int32"))
    count_blocks(ran, present, sm_used, grid=blocks, block=threads)
    ct.check(ran, np.array([blocks], "int32"), name="blocks that ran")
    ct.check(present, np.array([threads]), name="threads of a block")
    return int(sm_used.get().sum())


blocks = 100_000
sms, sms_of_one = sms_of(blocks), sms_of(1)
ct.facts(
    "one launch",
    {"blocks": blocks, "threads of a block": threads, "SMs used": sms},
)

# %% grid-within-sm
ct.claim(
    id="grid-within-sm",
    source="CUDATutorial 05",
    place={
        "en": "section on basic concepts, first sentence on the SM",
        "zh": "“基础概念”一节，讲 SM 的第一句",
    },
    form="said",
    statement={
        "en": "An SM can be divided into several grids, such as 2 or 3, and "
        "each grid holds several blocks. SMs on which the blocks of one grid "
        "ran:",
        "zh": "一个 SM 可以分为若干个网格，例如 2 到 3 个，每个网格内有若干个"
        "线程块。一个网格的线程块在几个 SM 上运行过：",
    },
    expected=1,
    measured=sms,
    rule="equal",
    found="counted",
    control=(
        {"en": "a grid of one block", "zh": "只有一个线程块的网格"},
        sms_of_one,
        1,
    ),
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


def counting(formula):
    return ct.Kernel(SOURCE, "tally", defines={"FORMULA": formula})


def not_once(tally, grid, block):
    """How many ids of a launch are not those of just one thread?"""
    count = ct.to_device(np.zeros(int(np.prod(grid) * np.prod(block)), "int32"))
    tally(count, grid=grid, block=block)
    return int((count.get() != 1).sum())


wrong = 0
for grid_dims, block_dims in product((1, 2, 3), repeat=2):
    tally = counting(f"{blocks_of[grid_dims]} {threads_of[block_dims]}")
    for grid in product(EXTENTS, repeat=grid_dims):
        for block in product(EXTENTS, repeat=block_dims):
            wrong += not_once(tally, grid, block)
ct.check(np.array([wrong]), np.zeros(1, int), name="ids missing or doubled")

# %% nine-formulas
# Two blocks of three threads without the factor have the ids 0 1 2 and 1 2 3.
spoilt = not_once(counting("blockIdx.x + threadIdx.x"), (2,), (3,))
ct.claim(
    id="nine-formulas",
    source="CUDATutorial 05",
    place={
        "en": "section on thread indices, all nine listings",
        "zh": "“线程索引”一节，全部九段代码",
    },
    form="code",
    statement={
        "en": "The nine formulas give every thread of a launch its own id. Ids "
        "missing or doubled, in launches with extents of 1 to 3:",
        "zh": "九个公式给一次启动中的每个线程一个唯一的编号。各维长度为 1 到 3 "
        "的启动中，缺少或重复的编号：",
    },
    expected=0,
    measured=wrong,
    rule="equal",
    found="counted",
    control=(
        {
            "en": "two blocks of three threads, without the factor blockDim.x",
            "zh": "两个线程块，每块三个线程，公式里少乘 blockDim.x",
        },
        spoilt,
        4,
    ),
)
