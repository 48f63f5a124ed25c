# ---
# jupyter:
#   cudatut:
#     title: {en: "Warp tiles: solutions", zh: "线程束分块：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# All numberings of a warp's lanes, and a warp tile of 64 x 64.

# %% setup
from dataclasses import replace
from itertools import combinations

import numpy as np
from block_tiles_lanes import LANES, passes
from ladder import LADDER, Gemm

import cudatut as ct

WARP_TILE = LADDER["warp_tile"]
SHAPES = [
    (1, 1, 1),
    (31, 33, 7),
    (129, 132, 36),
    (129, 100, 33),
    ct.size((257, 260, 132), (130, 132, 36)),
]


# %% solution-1
def gather(bits, lane):
    """The bits of a lane's number that stand in `bits`, pushed together."""
    return sum((lane >> bit & 1) << to for to, bit in enumerate(bits))


def numbering(columns, tm=8, tn=8):
    """Passes of A's and of B's reads at one depth, if these bits of a lane's number tell its column."""
    rows = [bit for bit in range(5) if bit not in columns]
    x, y = gather(columns, LANES) * 4, gather(rows, LANES) * tm
    apart = 4 * 2 ** len(columns)
    return (
        sum(passes(y + r, 4) for r in range(0, tm, 4)),
        sum(passes(x + c * apart, 4) for c in range(tn // 4)),
    )


found = {columns: numbering(columns) for columns in combinations(range(5), 3)}
ct.facts(
    "bits that tell the column: passes of A + B",
    {
        str(columns): f"{of_a} + {of_b}"
        for columns, (of_a, of_b) in found.items()
    },
)
fewest = min(map(sum, found.values()))
best = [columns for columns, both in found.items() if sum(both) == fewest]
one_each = [columns for columns in found if (0 in columns) != (1 in columns)]
ct.check(
    np.array([fewest, len(best)]),
    np.array([8, 6]),
    name="fewest passes, numberings",
)
ct.check(
    np.array(best),
    np.array(one_each),
    name="of bits 0 and 1, one tells the column",
)

# %% solution-2
WIDE = replace(
    WARP_TILE,
    name="64 x 64",
    kernel="sgemm_warp_tile<128,128,16,64,64,16,8>",
    options={**WARP_TILE.options, "block": "128"},
)
ct.facts(
    "32 x 64 and 64 x 64",
    {
        "words per FMA, 32 x 64": (32 + 64) / (32 * 64),
        "words per FMA, 64 x 64": (64 + 64) / (64 * 64),
        "passes per FMA of a lane, 32 x 64": sum(numbering((1, 2, 3))) / 64,
        "passes per FMA of a lane, 64 x 64": sum(numbering((1, 2, 3), tm=16))
        / 128,
    },
)
ct.show(WARP_TILE.compile().resources(block=256))
ct.show(WIDE.compile().resources(block=128))
for m, n, k in SHAPES:
    Gemm(m, n, k, 0.5, -2.0).check(WIDE)

# %% bench-2
large = ct.size(4096, 48)
LADDER.bench(
    [replace(WARP_TILE, name="32 x 64"), WIDE],
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="4096 x 4096 x 4096",
)
