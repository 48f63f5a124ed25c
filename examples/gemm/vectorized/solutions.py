# ---
# jupyter:
#   cudatut:
#     title: {en: "Vectorized access: solutions", zh: "向量化访存：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       large: [4096, 48]
#       ragged: [[257, 260, 132], [130, 132, 36]]
# ---

# %% [markdown]
# Widths that a pitch allows, and a tile of A that is not turned.

# %% given-1
import numpy as np


def width(row, pitch):
    """Words per load that the first address of a row allows: 4, 2 or 1."""
    return next(w for w in (4, 2, 1) if row * pitch % w == 0)


# %% solution-1
def loads_per_row(pitch, rows=8):
    """Mean number of loads for 8 words of a row, over so many rows."""
    return sum(8 / width(row, pitch) for row in range(rows)) / rows


# %% check-1
import cudatut as ct

pitches = (4096, 4097, 4098, 4099)
found = [loads_per_row(pitch) for pitch in pitches]
ct.check(np.array(found, "float64"), [2.0, 5.5, 3.0, 5.5], name="loads")

# %% given-2
import numpy as np
from cudatut.book.gemm.block_tiles.lanes import LANES, passes

BM, BK, TM = 128, 8, 8
ROWS = LANES // 16 * TM  # first row of each lane's results


# %% solution-2
def passes_to_read(turned):
    """Passes of a warp to read its words of A for one step of depth 8."""
    if turned:  # tile[depth][row]: four rows at a time, at one depth
        return BK * sum(passes(ROWS + r, 4) for r in range(0, TM, 4))
    # tile[row][depth]: four depths at a time, of one row
    return BK // 4 * sum(passes((ROWS + r) * BK, 4) for r in range(TM))


# %% check-2
import cudatut as ct

got = [passes_to_read(True), passes_to_read(False)]
ct.check(got, [32, 32], name="passes to read A")

# %% [markdown]
# The kernel that leaves A as it is, beside the one that turns it.

# %% rung-2
from cudatut.book.gemm.ladder.ladder import LADDER, Gemm
from cudatut.book.measure.loops import count, disassemble, main_turn

large = 4096
ragged = (257, 260, 132)
TN = 8
unturned = ct.read_rung("gemm/vectorized/vectorized_unturned.cu")
for m, n, k in [(1, 1, 1), (129, 132, 36), (129, 130, 33), ragged]:
    Gemm(m, n, k).check(unturned)
kernels = {
    "turned": LADDER["vectorized"].compile(),
    "as it is": unturned.compile(),
}
found = {
    name: count(main_turn(disassemble(k), BK * TM * TN))
    for name, k in kernels.items()
}
ct.table(
    "one step of depth 8",
    {
        name: {
            what: found[name][what]
            for what in ("LDS.128", "STS", "STS.128", "FFMA")
        }
        | {
            "all": found[name].total(),
            "registers": kernel.resources(block=256).registers,
        }
        for name, kernel in kernels.items()
    },
    corner="tile of A",
)

# %% bench-2
LADDER.bench(
    ["vectorized", unturned],
    m=large,
    n=large,
    k=large,
    rounds=7,
    name="4096 x 4096 x 4096",
)
