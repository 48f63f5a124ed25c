# ---
# jupyter:
#   cudatut:
#     title: {en: "Bank conflicts of a matrix product: solutions", zh: "矩阵乘法里的存储体冲突：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# The pitch that helps block_tile_2d, and a store that no pitch can help.

# %% setup
from dataclasses import replace

import numpy as np
from block_tiles_lanes import passes
from ladder import LADDER, Gemm

import cudatut as ct

t = np.arange(32)
SHAPES = [
    (1, 1, 1),
    (31, 33, 7),
    (129, 132, 36),
    (129, 100, 33),
    ct.size((257, 260, 132), (130, 132, 36)),
]
CONFLICT_FREE = LADDER["conflict_free"]


def variant(name, kernel):
    """A kernel of this chapter's solutions, launched as the rungs are."""
    return replace(
        CONFLICT_FREE,
        name=name,
        path="gemm/bank_conflicts_solutions.cu",
        kernel=kernel,
    )


# %% solution-1
TM, depth = 8, 8
y = t // 16 * TM


def reads_of_a(pitch):
    """Passes of a warp's reads of A in a step of depth 8: two depths at a time where rows begin at even words."""
    words = 2 if pitch % 2 == 0 else 1
    return sum(
        passes((y + r) * pitch + i, words)
        for r in range(TM)
        for i in range(0, depth, words)
    )


def stores_of_a(pitch):
    """Passes of a warp's stores of A in a step: four, 32 neighbors of the tile each time."""
    return 4 * passes(t // 8 * pitch + t % 8)


PITCHES = (8, 9, 10, 12)
for pitch in PITCHES:
    ct.facts(
        f"pitch {pitch}, per warp and step",
        {
            "passes, read A": reads_of_a(pitch),
            "passes, store A": stores_of_a(pitch),
        },
    )
pitched = {
    p: variant(f"pitch {p}", f"sgemm_pitch<128,128,8,8,8,{p}>") for p in PITCHES
}
for m, n, k in SHAPES:
    problem = Gemm(m, n, k)
    for rung in pitched.values():
        problem.check(rung)

# %% bench-1
large = ct.size(2048, 48)
LADDER.bench(
    pitched.values(),
    m=large,
    n=large,
    k=large,
    rounds=9,
    name="2048 x 2048 x 2048",
)

# %% solution-2
row, inner = t // 4, t % 4 * 4  # four lanes bring 16 words of a row


def stores(pitch):
    """Passes of one store to the turned tile."""
    return passes(inner * pitch + row)


ct.facts(
    "passes of one store, by pitch",
    {f"{p}": stores(p) for p in range(128, 141)},
)
ct.facts(
    "swapped, pitch 128",
    {
        "passes of one store": passes(inner * 128 + (row ^ inner // 4 * 8)),
        "passes of one read of A": passes(t // 16 * TM ^ 8, 4),
    },
)
deep = variant("deep", "sgemm_deep<128,128,16,8,8>")
for m, n, k in SHAPES:
    Gemm(m, n, k, 0.5, -2.0).check(deep)

# %% bench-2
shallow = replace(
    CONFLICT_FREE,
    name="two lanes, padded",
    kernel="sgemm_conflict_free<128,128,16,8,8>",
)
LADDER.bench(
    [shallow, replace(deep, name="four lanes, swapped")],
    m=large,
    n=large,
    k=large,
    rounds=9,
    name="2048 x 2048 x 2048, depth 16",
)
