# ---
# jupyter:
#   cudatut:
#     title: {en: "Bank conflicts of a matrix product", zh: "矩阵乘法里的存储体冲突"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# Every access of the kernel to shared memory, bank by bank, from its own index arithmetic; three cures and a placebo.

# %% setup
from dataclasses import replace

import numpy as np
from block_tiles_lanes import passes
from ladder import LADDER, Gemm, earlier_rungs

import cudatut as ct
from cudatut.ladder import read_rung
from cudatut.profiler import profile_launches

side = ct.size(1024, 48, profiled=1024)  # m = n = k of the counted launches
BM, BN, BK, TM, TN = 128, 128, 8, 8, 8
THREADS = BM * BN // (TM * TN)
LAYOUTS = {  # pitch of As, pitch of Bs, swizzled?
    "as it was": (BM, BN, 0),
    "Bs padded": (BM, BN + 4, 0),
    "As padded": (BM + 4, BN, 0),
    "swizzled": (BM, BN, 1),
}
KERNEL = read_rung(
    "gemm/bank_conflicts.cu"
)  # vectorized, with the layout for a choice
RUNGS = {
    name: replace(
        KERNEL,
        name=name,
        kernel="sgemm_layout<128,128,8,8,8,{},{},{}>".format(*layout),
    )
    for name, layout in LAYOUTS.items()
}
RUNGS["conflict_free"] = LADDER["conflict_free"]

# %% check
counted_problem = Gemm(side, side, side)
for (
    rung
) in RUNGS.values():  # these launches come first: the profiler counts them
    counted_problem.check(rung)
for m, n, k in [(129, 100, 33), ct.size((257, 260, 132), (130, 132, 36))]:
    problem = Gemm(m, n, k, 0.5, -2.0)
    for rung in RUNGS.values():
        problem.check(rung)
LADDER.check(
    "conflict_free",
    [
        {"m": m, "n": n, "k": k}
        for m, n, k in ((1, 1, 1), (31, 33, 7), (5, 3, 0))
    ],
)

# %% scalar
# One word per lane: 8 x 8 results per thread, tiles that are not turned. The tile of CUDATutorial, and ours.
for name, columns in (("64 x 64", 64), ("128 x 128", 128)):
    t = np.arange(32)
    x, y = t % (columns // TN) * TN, t // (columns // TN) * TM
    ct.facts(
        f"tile of {name}, passes",
        {
            "As[y + r][i], one word": passes(y * BK),
            "Bs[i][x + c], one word": passes(x),
            "Bs[i][x + c], four words": passes(x, 4),
            "the same, ways": passes(x, 4) / 4,  # four groups of 8 lanes
        },
    )


# %% enumerate
def swap_a(inner, row):  # place_a and place_b of the kernel
    return row ^ inner // 4 % 2 * 16


def swap_b(column):
    return column ^ column // 32 % 2 * 4


def per_step(pitch_a, pitch_b, swizzle, next_b=4, apart=TN):
    """Passes of all warps of a block in one step of depth BK, for the four kinds of access.

    apart: columns between neighboring lanes; next_b: between the two groups of four columns of a lane.
    """
    a = swap_a if swizzle else lambda inner, row: row
    b = swap_b if swizzle else lambda column: column
    found = dict.fromkeys(("store A", "store B", "read A", "read B"), 0)
    for warp in range(THREADS // 32):
        t = 32 * warp + np.arange(32)
        for first in range(0, BM * BK // 4, THREADS):
            i = (first + t) // 2
            row, inner = i % BM, i // BM * 8 + t % 2 * 4
            for d in range(4):
                found["store A"] += passes(
                    (inner + d) * pitch_a + a(inner, row)
                )
        for first in range(0, BK * BN // 4, THREADS):
            i = first + t
            inner, column = i // (BN // 4), i % (BN // 4) * 4
            found["store B"] += passes(inner * pitch_b + b(column), 4)
        x, y = t % (BN // TN) * apart, t // (BN // TN) * TM
        for i in range(BK):
            for r in range(0, TM, 4):
                found["read A"] += passes(i * pitch_a + a(i, y + r), 4)
            for c in range(0, TN, 4):
                found["read B"] += passes(
                    i * pitch_b + b(x + c // 4 * next_b), 4
                )
    return {name: count // (THREADS // 32) for name, count in found.items()}


enumerated = {name: per_step(*layout) for name, layout in LAYOUTS.items()}
enumerated["conflict_free"] = per_step(
    BM + 4, BN, 0, next_b=BN // TN * 4, apart=4
)
for name, of in enumerated.items():
    ct.facts(
        f"{name}: passes of a warp in one step", {**of, "all": sum(of.values())}
    )

# %% bound
# A step is BK * TM * TN FMAs of each warp. An SM starts four of them per cycle, and one pass.
cycles = BK * TM * TN / 4
ct.facts("cycles of a step for each warp: FMAs", {"FMAs": cycles})
ct.facts(
    "passes per cycle of FMAs",
    {name: sum(of.values()) / cycles for name, of in enumerated.items()},
)
ct.facts(
    "most of the FMA rate",
    {
        name: (100 * min(1, cycles / sum(of.values())), "%")
        for name, of in enumerated.items()
    },
)

# %% count
LOADS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
STORES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
LOAD_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
STORE_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
counted = profile_launches(
    "gemm/bank_conflicts",
    kernel="regex:^sgemm_(layout|conflict_free)$",
    metrics=[LOADS, STORES, LOAD_CONFLICTS, STORE_CONFLICTS],
    launches=len(RUNGS),
)
steps = side // BK * side**2 / (BM * BN) * THREADS / 32  # of all warps together
counts = dict(zip(RUNGS, counted))
for name, got in counts.items():
    of = enumerated[name]
    ct.facts(
        f"{name}, per warp and step",
        {
            "predicted passes, loads": of["read A"] + of["read B"],
            "measured passes, loads": got[LOADS] / steps,
            "predicted passes, stores": of["store A"] + of["store B"],
            "measured passes, stores": got[STORES] / steps,
            "conflicts of loads": got[LOAD_CONFLICTS] / steps,
            "conflicts of stores": got[STORE_CONFLICTS] / steps,
        },
    )

# %% claim-padding
if counted:
    left = counts["Bs padded"][LOADS] / counts["as it was"][LOADS]
    ct.claim(
        id="gemm-padding-b",
        source="SGEMM worklog, kernel 8",
        statement={
            "en": "Longer rows of Bs remove the bank conflicts of its reads. Share of the passes that is left",
            "zh": "把 Bs 的行加长，读取就没有存储体冲突了。这里量的是剩下的趟数所占的比例",
        },
        predicted=sum(
            enumerated["swizzled"][what] for what in ("read A", "read B")
        )
        / sum(enumerated["as it was"][what] for what in ("read A", "read B")),
        measured=left,
        verdict="refuted" if left > 0.95 else "confirmed",
    )

# %% claim-float4
# If lanes of four words were served all at once, 128 words would need four passes where one is due: four in each bank.
groups = [
    len(
        np.unique(
            (4 * np.arange(8 * g, 8 * g + 8)[:, None] + np.arange(4)) % 32
        )
    )
    for g in range(4)
]
ct.facts(
    "one store of four words per lane",
    {"banks used by each group of 8 lanes": str(groups)},
)
if counted:
    conflicts = counts["conflict_free"][STORE_CONFLICTS] / steps
    ct.claim(
        id="gemm-float4-stores",
        source="SGEMM worklog (Chinese translation), kernel 6",
        statement={
            "en": "Stores of four words per lane have no bank conflicts, because CUDA optimizes them",
            "zh": "每个 lane 存四个字不会有存储体冲突，因为 CUDA 做了优化",
        },
        predicted=0,
        measured=conflicts,
        unit="conflicts of stores per warp and step",
        # A conflict would add a pass at least. What the counter adds, a third of a pass or so, it adds to each layout. So
        # the stores have none, but for another reason: groups of 8 lanes are served one after the other.
        verdict="depends" if conflicts < 1 else "refuted",
    )

# %% bench
large = ct.size(4096, 48)
times = LADDER.bench(
    [
        *earlier_rungs()[1:],
        LADDER["block_tile_2d"],
        LADDER["vectorized"],
        *RUNGS.values(),
    ],
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="4096 x 4096 x 4096",
)

# %% claim-slower
gain = times["as it was"].median_us / times["swizzled"].median_us
ct.claim(
    id="gemm-conflicts-slower",
    source="SGEMM worklog, kernel 7 (RTX A6000)",
    statement={
        "en": "Without the conflicts of Bs the product is slower than with them",
        "zh": "消除 Bs 的冲突之后，乘法反而更慢",
    },
    predicted="< 1",
    measured=gain,
    unit="×",
    verdict="confirmed"
    if gain < 0.99
    else "depends",  # on the layout, which is another there, and on the GPU
)
ct.facts(
    "time with conflicts / without",
    {
        "bound of the passes": sum(enumerated["as it was"].values()) / cycles,
        "swizzled": gain,
        "conflict_free": times["as it was"].median_us
        / times["conflict_free"].median_us,
        "As padded": times["as it was"].median_us
        / times["As padded"].median_us,
        "Bs padded": times["as it was"].median_us
        / times["Bs padded"].median_us,
    },
)
