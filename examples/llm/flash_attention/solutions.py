# ---
# jupyter:
#   cudatut:
#     title: {en: "FlashAttention, the kernel: solutions", zh: "FlashAttention 实现：参考答案"}
#     requires: sm_75
#     extra: llm
#     alone: false
# ---

# %% [markdown]
# Where results are, and a swizzle for rows of 64 bytes.

# %% given-1
import numpy as np


# %% solution-1
def holder(row, column):
    return row % 8 * 4 + column // 2, row // 8 * 2 + column % 2


# %% check-1
import cudatut as ct

expected = np.empty((16, 8, 2), int)
for lane in range(32):
    g, t = lane // 4, lane % 4
    for i in range(4):
        expected[g + i // 2 * 8, 2 * t + i % 2] = lane, i
got = [[holder(r, c) for c in range(8)] for r in range(16)]
ct.check(np.array(got), expected, name="lane and register")

# %% given-2
import numpy as np


# %% solution-2
def place(row, chunk):
    return row * 64 + (chunk ^ row // 2 % 4) * 16


# %% check-2
import cudatut as ct

passes = []
for first in range(0, 64, 8):
    for chunk in range(4):
        groups = [
            place(row, chunk) // 16 % 8 for row in range(first, first + 8)
        ]
        passes.append(np.bincount(groups).max())
ct.check(np.array(passes), np.ones(len(passes), int), name="passes")
rows = [[place(row, c) // 64 for c in range(4)] for row in range(64)]
ct.check(np.array(rows), np.indices((64, 4))[0], name="rows of the chunks")
places = {place(row, c) for row in range(64) for c in range(4)}
ct.check(np.array(len(places)), 256, name="different places")
