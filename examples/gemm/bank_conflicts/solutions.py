# ---
# jupyter:
#   cudatut:
#     title: {en: "Bank conflicts of a matrix product: solutions", zh: "矩阵乘法里的存储体冲突：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     sizes:
#       large: [2048, 48]
#       ragged: [[257, 260, 132], [130, 132, 36]]
# ---

# %% [markdown]
# The pitch that helps block_tile_2d, and a store that no pitch can help.

# %% given-1
from cudatut.book.gemm.block_tiles.lanes import LANES, passes

TM, DEPTH = 8, 8
ROWS = LANES // 16 * TM  # first row of each lane's results


# %% solution-1
def reads_of_a(pitch):
    """Passes of a warp to read A in a step of depth 8."""
    words = 2 if pitch % 2 == 0 else 1
    return sum(
        passes((ROWS + r) * pitch + i, words)
        for r in range(TM)
        for i in range(0, DEPTH, words)
    )


def stores_of_a(pitch):
    """Passes of a warp for its four stores of A in a step."""
    return 4 * passes(LANES // 8 * pitch + LANES % 8)


# %% check-1
import cudatut as ct

PITCHES = (8, 9, 10, 12)
read = [reads_of_a(pitch) for pitch in PITCHES]
ct.check(read, [64, 64, 32, 64], name="passes to read A")
stored = [stores_of_a(pitch) for pitch in PITCHES]
ct.check(stored, [4, 8, 8, 8], name="passes to store A")

# %% [markdown]
# The same pitches on the clock.

# %% bench-1
from dataclasses import replace

from cudatut.book.gemm.ladder.ladder import LADDER, Gemm

large = 2048
ragged = (257, 260, 132)
SHAPES = [(1, 1, 1), (31, 33, 7), (129, 132, 36), (129, 100, 33), ragged]
OURS = replace(
    LADDER["conflict_free"],
    path="gemm/bank_conflicts/bank_conflicts_solutions.cu",
)
pitched = {
    f"pitch {p}": replace(
        OURS, name=f"pitch {p}", kernel=f"sgemm_pitch<128,128,8,8,8,{p}>"
    )
    for p in PITCHES
}
for m, n, k in SHAPES:
    problem = Gemm(m, n, k)
    for rung in pitched.values():
        problem.check(rung)
times = LADDER.bench(
    pitched.values(),
    m=large,
    n=large,
    k=large,
    rounds=9,
    name="2048 x 2048 x 2048",
)
ct.table(
    "rows of As",
    {
        str(p): {"passes to read A": r, "passes to store A": s}
        | {"TFLOP/s": times[f"pitch {p}"].value}
        for p, r, s in zip(PITCHES, read, stored)
    },
    corner="pitch",
)
gain = times["pitch 8"].median_us / times["pitch 10"].median_us
ct.facts("pitch 10", {"times as fast as pitch 8": gain})

# %% given-2
import numpy as np
from cudatut.book.gemm.block_tiles.lanes import LANES, passes

ROW, INNER = LANES // 4, LANES % 4 * 4  # four lanes bring 16 words of a row


# %% solution-2
def swapped(inner, row):
    """Place of a row, 0 to 127, of the turned tile at depth inner."""
    return row ^ inner // 4 * 8


# %% check-2
import cudatut as ct

store = passes(INNER * 128 + swapped(INNER, ROW))
ct.check(store, 1, name="passes of one store, pitch 128")
rows = range(128)
places = np.array([[swapped(i, row) for row in rows] for i in range(16)])
each = np.tile(rows, (16, 1))
ct.check(np.sort(places), each, name="each place once, at each depth")
fours = places.reshape(-1, 4)
together = fours[:, :1] // 4 * 4 + np.arange(4)
ct.check(fours, together, name="four rows side by side")

# %% [markdown]
# All pitches, and the kernel with this swizzle beside one that is padded.

# %% rung-2
ct.table(
    "one store of A, four lanes to a row",
    {
        str(p): {"passes": passes(INNER * p + ROW)}
        for p in (128, 129, 130, 132, 136, 140)
    },
    corner="pitch",
)
deep = replace(
    OURS, name="four lanes, swapped", kernel="sgemm_deep<128,128,16,8,8>"
)
for m, n, k in SHAPES:
    Gemm(m, n, k, 0.5, -2.0).check(deep)

# %% bench-2
shallow = replace(
    LADDER["conflict_free"],
    name="two lanes, padded",
    kernel="sgemm_conflict_free<128,128,16,8,8>",
)
times = LADDER.bench(
    [shallow, deep],
    m=large,
    n=large,
    k=large,
    rounds=9,
    name="2048 x 2048 x 2048, depth 16",
)
gain = times[shallow.name].median_us / times[deep.name].median_us
ct.facts("four lanes, swapped", {"times as fast as two lanes, padded": gain})
