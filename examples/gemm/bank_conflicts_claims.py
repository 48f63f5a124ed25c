# ---
# jupyter:
#   cudatut:
#     title: {en: "Bank conflicts of a matrix product: claims", zh: "矩阵乘法里的存储体冲突：有关说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       side: [1024, 48, 1024]
#       large: [4096, 48]
# ---

# %% [markdown]
# What the SGEMM worklog and its translation say of bank conflicts, tried.

# %% setup
from dataclasses import replace

import numpy as np
from block_tiles_lanes import LANES, passes, place
from ladder import LADDER, Gemm

import cudatut as ct

side = 1024
large = 4096
BM, BN, BK, TM, TN = 128, 128, 8, 8, 8
KERNEL = ct.read_rung("gemm/bank_conflicts.cu")
RUNGS = {
    name: replace(
        KERNEL, name=name, kernel=f"sgemm_layout<128,128,8,8,8,{layout}>"
    )
    for name, layout in (
        ("as it was", "128,128,0"),
        ("Bs padded", "128,132,0"),
        ("swizzled", "128,128,1"),
    )
}
COUNTED = (RUNGS["as it was"], RUNGS["Bs padded"], LADDER["conflict_free"])

# %% count
LOADS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
STORE_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
problem = Gemm(side, side, side)
for rung in COUNTED:
    problem.check(rung)
counted = ct.profile_launches(
    "gemm/bank_conflicts_claims",
    kernel="regex:^sgemm_(layout|conflict_free)$",
    metrics=[LOADS, STORE_CONFLICTS],
    launches=len(COUNTED),
)

# %% claim-padding
x, y = place(LANES, BN, TM, TN)
read_a = BK * sum(passes(y + r, 4) for r in range(0, TM, 4))
read_b = BK * sum(passes(x + c, 4) for c in range(0, TN, 4))
# Without conflicts, eight lanes of four words take one pass.
free_b = BK * TN // 4 * 4
if counted:
    left = counted[1][LOADS] / counted[0][LOADS]
    ct.claim(
        id="gemm-padding-b",
        source="SGEMM worklog, kernel 8",
        statement={
            "en": "Longer rows of Bs remove the bank conflicts of its reads. Share of the passes that is left",
            "zh": "把 Bs 的行加长，读取就没有存储体冲突了。这里量的是剩下的趟数所占的比例",
        },
        predicted=(read_a + free_b) / (read_a + read_b),
        measured=left,
        verdict="refuted" if left > 0.95 else "confirmed",
    )

# %% banks
# If all lanes of four words were served at once, 128 words would meet four by
# four in the banks.
groups = [
    len(np.unique((4 * LANES[8 * g : 8 * g + 8, None] + np.arange(4)) % 32))
    for g in range(4)
]
ct.facts(
    "one store of four words per lane",
    {
        f"banks used by lanes {8 * g} to {8 * g + 7}": banks
        for g, banks in enumerate(groups)
    },
)

# %% claim-float4
if counted:
    steps = side // BK * side**2 / (TM * TN) / 32  # of all warps together
    conflicts = counted[2][STORE_CONFLICTS] / steps
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
        # A conflict would add a pass at least. What the counter adds, a third
        # of a pass or so, it adds to each layout. So the stores have none, but
        # for another reason: groups of 8 lanes are served one after the other.
        verdict="depends" if conflicts < 1 else "refuted",
    )

# %% bench
times = LADDER.bench(
    [RUNGS["as it was"], RUNGS["swizzled"]],
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
    # On the layout, which is another there, and on the GPU.
    verdict="confirmed" if gain < 0.99 else "depends",
)
