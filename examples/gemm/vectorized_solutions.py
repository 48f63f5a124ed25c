# ---
# jupyter:
#   cudatut:
#     title: {en: "Vectorized access: solutions", zh: "向量化访存：参考答案"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# Widths that a pitch allows, and a tile of A that is not turned.

# %% setup
import numpy as np
from block_tiles_lanes import LANES, passes, place
from ladder import LADDER, Gemm
from loops import count, disassemble, main_turn

import cudatut as ct
from cudatut.ladder import read_rung


# %% solution-1
def width(row, pitch):
    """Words per load that the first address of a row allows: 4, 2 or 1."""
    return next(w for w in (4, 2, 1) if row * pitch % w == 0)


def loads_per_row(pitch, rows=8):
    """Mean number of loads for 8 words of a row, each row as wide as its own address allows."""
    return sum(8 / width(row, pitch) for row in range(rows)) / rows


by_pitch = {pitch: loads_per_row(pitch) for pitch in (4096, 4097, 4098, 4099)}
ct.facts(
    "loads for 8 words of a row, on average",
    {f"pitch {pitch}": loads for pitch, loads in by_pitch.items()},
)
ct.check(
    np.array(list(by_pitch.values())),
    np.array([2.0, 5.5, 3.0, 5.5]),
    name="loads per row",
)

# %% solution-2
BM, BN, BK, TM, TN = 128, 128, 8, 8, 8
x, y = place(LANES, BN, TM, TN)
row, inner = LANES // 2, LANES % 2 * 4
unturned = read_rung("gemm/vectorized_unturned.cu")
for m, n, k in [
    (1, 1, 1),
    (129, 132, 36),
    (129, 130, 33),
    ct.size((257, 260, 132), (130, 132, 36)),
]:
    Gemm(m, n, k).check(unturned)
kernels = {
    "turned": LADDER["vectorized"].compile(),
    "as it is": unturned.compile(),
}
found = {
    name: count(main_turn(disassemble(k), BK * TM * TN))
    for name, k in kernels.items()
}
for name, kernel in kernels.items():
    ct.facts(
        f"tile of A, {name}: one step of depth 8",
        {
            what: found[name][what]
            for what in ("LDS.128", "STS", "STS.128", "FFMA")
        }
        | {
            "all": found[name].total(),
            "registers": kernel.resources(block=256).registers,
        },
    )
ct.facts(
    "passes of a warp in one step, A only",
    {
        "turned, stores": sum(passes((inner + d) * BM + row) for d in range(4)),
        "turned, reads": BK * sum(passes(y + r, 4) for r in range(0, TM, 4)),
        "as it is, stores": passes(row * BK + inner, 4),
        "as it is, reads": BK
        // 4
        * sum(passes((y + r) * BK, 4) for r in range(TM)),
    },
)
ct.claim(
    id="a-must-be-turned",
    source="CUDATutorial 11/02",
    statement={
        "en": "Only if A is transposed on its way in can a thread read four words of it per instruction",
        "zh": "只有把 A 转置后存入共享内存，线程才能一次读它的四个字",
    },
    predicted=found["turned"]["LDS.128"] // 2,  # those of B
    measured=found["as it is"]["LDS.128"],
    unit="LDS.128",
    verdict="refuted"
    if found["as it is"]["LDS.128"] == found["turned"]["LDS.128"]
    else "confirmed",
)

# %% bench-2
large = ct.size(4096, 48)
LADDER.bench(
    ["vectorized", unturned],
    m=large,
    n=large,
    k=large,
    rounds=7,
    name="4096 x 4096 x 4096",
)
