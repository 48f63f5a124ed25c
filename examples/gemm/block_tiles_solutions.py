# ---
# jupyter:
#   cudatut:
#     title: {en: "Two-dimensional thread tiles: solutions", zh: "二维线程分块：参考答案"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# The best thread tile for a number of registers, and columns that are apart.

# %% setup
import numpy as np
from block_tiles_lanes import LANES, passes, place, sectors
from ladder import LADDER, Gemm

import cudatut as ct
from cudatut.ladder import read_rung


# %% solution-1
def best_tile(registers):
    """The thread tile of powers of two with the most FMAs per word among those that fit; the squarer first."""
    shapes = [(1 << i, 1 << j) for i in range(6) for j in range(i + 1)]
    fitting = [(tm, tn) for tm, tn in shapes if tm * tn + tm + tn <= registers]
    return max(fitting, key=lambda s: (s[0] * s[1] / (s[0] + s[1]), -s[0]))


budgets = 24, 48, 100, 224
found = {registers: best_tile(registers) for registers in budgets}
ct.facts(
    "best thread tile for sums and operands in so many registers",
    {
        f"{registers} registers": f"{tm} x {tn}"
        for registers, (tm, tn) in found.items()
    },
)
ct.check(np.array(found[100]), np.array([8, 8]), name="100 registers")
ct.check(np.array(found[224]), np.array([16, 8]), name="224 registers")

# %% solution-2
BM, BN, BK, TM, TN = 128, 128, 8, 8, 8
x, y = place(LANES, BN, TM, TN)
apart = BN // TN  # from one column of a thread to its next, in the new layout
x_new = LANES % apart
stores = {
    "side by side": sum(sectors(y * BN + x + c) for c in range(TN)),
    "apart": sum(sectors(y * BN + x_new + apart * c) for c in range(TN)),
}
reads = {
    "side by side": sum(passes(x + c, 4) for c in range(0, TN, 4)),
    "apart": sum(passes(x_new + apart * c) for c in range(TN)),
}
ct.facts(
    "eight columns per thread",
    {f"{name}: sectors, a row of C": n for name, n in stores.items()}
    | {f"{name}: passes, a row of B": n for name, n in reads.items()},
)
strided = read_rung("gemm/block_tiles_strided.cu")
for m, n, k in [
    (1, 1, 1),
    (31, 33, 7),
    (129, 100, 33),
    (257, 260, ct.size(132, 36)),
]:
    Gemm(m, n, k).check(strided)
Gemm(100, 70, 50, alpha=0.5, beta=-2.0, integers=True).check(strided)

# %% bench-2
large = ct.size(4096, 48)
LADDER.bench(
    ["block_tile_2d", strided],
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="4096 x 4096 x 4096",
)
