# ---
# jupyter:
#   cudatut:
#     title: {en: "One thread, many results: solutions", zh: "一个线程算多个结果：参考答案"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# Two columns per thread, and why eight neighbors of a row are the wrong eight.

# %% setup
import numpy as np
from ladder import LADDER, Matmul

import cudatut as ct
from cudatut.ladder import read_rung

lane = np.arange(32)

# %% solution-1
two_columns = read_rung("basics/two_columns.cu")
for m, n, k in [(1, 1, 1), (31, 33, 7), (33, 31, 129), (100, 70, 50), (65, 129, 9)]:
    Matmul(m, n, k).check(two_columns)
Matmul(96, 200, 40, integers=True).check(two_columns)
k = 1024
ct.facts(
    "words per result, K = 1024",
    {
        "thread_tile, shared": k * (8 + 1) / 8,
        "two_columns, shared": k * (8 + 2) / 16,
        "thread_tile, global": k * (1 / 64 + 1 / 64),
        "two_columns, global": k * (1 / 64 + 1 / 64),
    },
)

# %% bench-1
large = ct.size(2048, 70)
LADDER.bench(
    ["thread_tile", two_columns], m=large, n=large, k=large, rounds=11, name="2048 x 2048 x 2048"
)


# %% solution-2
def sectors(words):
    """Sectors that a warp's request touches, from the index of the word that each lane wants."""
    return len(np.unique(4 * words // 32))


def passes(words):
    """Passes that a warp's request to shared memory takes: the most distinct words in one bank."""
    distinct = np.unique(words)
    return int(np.bincount(distinct % 32).max())


TM, BN, n = 8, 64, 2048
per_row = BN // TM  # threads side by side, when each has TM neighbors of a row
down, along = (lane, 0 * lane), (lane % per_row * TM, lane // per_row)  # column and row of a lane
ct.facts(
    "results one below the other / side by side",
    {
        "below: sectors per store of C": sectors(down[1] * n + down[0]),
        "beside: sectors per store of C": sectors(along[1] * n + along[0]),
        "below: passes per word of B": passes(down[0]),
        "beside: passes per word of B": passes(along[0]),
    },
)
ct.check(np.array([sectors(along[1] * n + along[0])]), np.array([32]), name="sectors, beside")
ct.check(np.array([passes(along[0])]), np.array([2]), name="passes, beside")
