# ---
# jupyter:
#   cudatut:
#     title: {en: "Two-dimensional thread tiles: solutions", zh: "二维线程分块：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {large: [4096, 48], deep: [132, 36]}
# ---

# %% [markdown]
# The best thread tile for a number of registers, and columns that are apart.

# %% given-1
import numpy as np


# %% solution-1
def best_tile(registers):
    """(rows, columns) of the thread tile with the most FMAs per word."""
    shapes = [(1 << i, 1 << j) for i in range(6) for j in range(i + 1)]
    fitting = [(tm, tn) for tm, tn in shapes if tm * tn + tm + tn <= registers]
    return max(fitting, key=lambda s: (s[0] * s[1] / (s[0] + s[1]), -s[0]))


# %% check-1
import cudatut as ct

for registers, best in (
    (24, (4, 4)),
    (48, (8, 4)),
    (100, (8, 8)),
    (224, (16, 8)),
):
    ct.check(best_tile(registers), best, name=f"{registers} registers")

# %% given-2
import numpy as np
from cudatut.book.gemm.block_tiles.lanes import LANES, passes, sectors

ROWS = LANES // 16  # of a warp; 16 lanes in each


# %% solution-2
def columns(lane):
    """The eight columns, 0 to 127, of a lane's results, in order."""
    return lane % 16 + 16 * np.arange(8)


# %% check-2
import cudatut as ct

mine = np.array([columns(lane) for lane in LANES])
ct.check(np.sort(mine[:16].ravel()), np.arange(128), name="each column once")
stored = sum(sectors(ROWS * 8 * 128 + mine[:, c]) for c in range(8))
read = sum(passes(mine[:, c]) for c in range(8))
ct.check([stored, read], [32, 8], name="sectors stored, passes read")

# %% [markdown]
# The same as a rung, and the two layouts counted.

# %% rung-2
from cudatut.book.gemm.block_tiles.lanes import place
from cudatut.book.gemm.ladder.ladder import LADDER, Gemm

large = 4096
deep = 132
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
ct.table(
    "eight columns per thread",
    {
        name: {
            "sectors, a row of C": stores[name],
            "passes, a row of B": reads[name],
        }
        for name in stores
    },
    corner="columns",
)
strided = ct.read_rung("gemm/block_tiles/block_tiles_strided.cu")
for m, n, k in [(1, 1, 1), (31, 33, 7), (129, 100, 33), (257, 260, deep)]:
    Gemm(m, n, k).check(strided)
scaled = Gemm(100, 70, 50, alpha=0.5, beta=-2.0, integers=True)
scaled.check(strided)

# %% bench-2
LADDER.bench(
    ["block_tile_2d", strided],
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="4096 x 4096 x 4096",
)
