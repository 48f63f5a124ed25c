# ---
# jupyter:
#   cudatut:
#     title: {en: "Warp tiles: solutions", zh: "线程束分块：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     sizes:
#       ragged: [[257, 260, 132], [130, 132, 36]]
#       large: [4096, 48]
# ---

# %% [markdown]
# All numberings of a warp's lanes, and a warp tile of 64 x 64.

# %% given-1
from itertools import combinations

import numpy as np
from cudatut.book.gemm.block_tiles.lanes import LANES, passes


def gather(bits, lane):
    """The bits of a lane's number that stand in `bits`, pushed together."""
    return sum((lane >> bit & 1) << to for to, bit in enumerate(bits))


# %% solution-1
def numbering(columns):
    """(passes of A, passes of B) at one depth of a warp tile of 32 x 64, if the
    three bits `columns` of a lane's number tell its column."""
    rows = [bit for bit in range(5) if bit not in columns]
    x, y = gather(columns, LANES) * 4, gather(rows, LANES) * 8
    of_a = passes(y, 4) + passes(y + 4, 4)
    return of_a, passes(x, 4) + passes(x + 32, 4)


# %% check-1
import cudatut as ct

found = {columns: numbering(columns) for columns in combinations(range(5), 3)}
fewest = min(map(sum, found.values()))
best = [columns for columns, both in found.items() if sum(both) == fewest]
ct.check([fewest, len(best)], [8, 6], name="fewest passes, numberings")
one_each = [columns for columns in found if (0 in columns) != (1 in columns)]
ct.check(best, one_each, name="of bits 0 and 1, one tells the column")

# %% [markdown]
# The passes of all ten.

# %% numberings-1
ct.table(
    "passes at one depth",
    {
        str(columns): {"A": of_a, "B": of_b}
        for columns, (of_a, of_b) in found.items()
    },
    corner="bits that tell the column",
)

# %% given-2
import cudatut as ct

# %% solution-2
wide = ct.Kernel(
    "gemm/ladder/warp_tile.cu", "sgemm_warp_tile<128,128,16,64,64,16,8>"
)


def product(a, b):
    """A B by warp tiles of 64 x 64: 16 x 8 results per thread, depth 16."""
    (m, k), n = a.shape, b.shape[1]
    c = ct.empty((m, n), "float32")
    grid = ct.cdiv(n, 128), ct.cdiv(m, 128)
    wide(a, b, c, m, n, k, 1.0, 0.0, grid=grid, block=128)
    return c


# %% check-2
import cudatut as ct

ragged = (257, 260, 132)
for m, n, k in ((1, 1, 1), (31, 33, 7), (129, 100, 33), ragged):
    a = ct.rng(0).integers(-8, 9, (m, k)).astype("float32")
    b = ct.rng(1).integers(-8, 9, (k, n)).astype("float32")
    got = product(ct.to_device(a), ct.to_device(b))
    ct.check(got, a.astype("float64") @ b, name=f"{m} x {n} x {k}", rtol=0)

# %% [markdown]
# What the larger tile costs, and how fast it is.

# %% bench-2
from dataclasses import replace

from cudatut.book.gemm.block_tiles.lanes import LANES, passes
from cudatut.book.gemm.ladder.ladder import LADDER

SMALL = replace(LADDER["warp_tile"], name="32 x 64")
WIDE = replace(
    SMALL,
    name="64 x 64",
    kernel="sgemm_warp_tile<128,128,16,64,64,16,8>",
    options={**SMALL.options, "block": "128"},
)
y = LANES // 16 * 2 + LANES % 2  # a lane's place in the warp, and its passes
x = LANES // 2 % 8 * 4
of_b = passes(x, 4) + passes(x + 32, 4)
table = {}
for rung, rows in ((SMALL, 8), (WIDE, 16)):
    needs = rung.compile().resources(block=256 * 8 // rows)
    of_a = sum(passes(y * rows + r, 4) for r in range(0, rows, 4))
    table[rung.name] = {
        "words per FMA": (4 * rows + 64) / (4 * rows * 64),
        "passes per FMA of a lane": (of_a + of_b) / (rows * 8),
        "registers": needs.registers,
        "blocks per SM": needs.blocks_per_sm,
        "warps per scheduler": needs.blocks_per_sm * 64 // rows // 4,
    }
ct.table("32 x 64 and 64 x 64", table, corner="tile of a warp")
large = 4096
LADDER.bench(
    [SMALL, WIDE],
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="4096 x 4096 x 4096",
)
