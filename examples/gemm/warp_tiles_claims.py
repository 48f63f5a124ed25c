# ---
# jupyter:
#   cudatut:
#     title: {en: "Warp tiles: claims", zh: "线程束分块：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     sizes: {large: [4096, 48]}
# ---

# %% [markdown]
# What other sources say of warp tiles, tried.

# %% setup
from dataclasses import replace

import numpy as np
from ladder import LADDER

import cudatut as ct

large = 4096
RUNGS = {
    "conflict_free": replace(
        LADDER["conflict_free"],
        name="conflict_free",
        kernel="sgemm_conflict_free<128,128,16,8,8>",
    ),
    "warp_tile": LADDER["warp_tile"],
}

# %% claim-gain
times = LADDER.bench(
    list(RUNGS.values()),
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="4096 x 4096 x 4096, warp tiles",
)
gain = times["conflict_free"].median_us / times["warp_tile"].median_us
ct.claim(
    id="warp-tiles-gain",
    source="SGEMM worklog, kernels 9 and 10 (RTX A6000)",
    statement={
        "en": "Warp tiles make the product 1.10 times as fast "
        "(19,721 to 21,779 GFLOP/s)",
        "zh": "线程束分块使乘法的速度变为 1.10 倍（19721 到 21779 GFLOP/s）",
    },
    predicted=1.10,
    measured=gain,
    unit="×",
    verdict="confirmed" if abs(gain / 1.10 - 1) < 0.03 else "depends",
)

# %% claim-parallelism
resident = {
    name: rung.compile().resources(block=256).blocks_per_sm * 8
    for name, rung in RUNGS.items()
}
more = resident["warp_tile"] / resident["conflict_free"]
ct.claim(
    id="warp-tiles-parallelism",
    source="CUDATutorial 11/03",
    statement={
        "en": "Warp tiles are faster because there is more parallelism: more "
        "warps are at work at the same time",
        "zh": "线程束分块更快，是因为并行度更高：同时工作的线程束更多",
    },
    predicted="> 1",
    measured=more,
    unit="warps per SM, with warp tiles / without",
    verdict="confirmed" if more > 1 else "refuted",
)

# %% [markdown]
# The results of a block of 256 threads whose warps are numbered by the
# quotient, and by the remainder.

# %% claim-modulo
BM, BN, WM, WN, TM, TN = 128, 128, 32, 64, 8, 8
t = np.arange(256)
lane_x = t % 32 // 2 % 8
lane_y = t % 32 // 16 * 2 + t % 2
table = {}
for how, warp in (("/", t // 32), ("%", t % 32)):
    x = warp % (BN // WN) * WN + lane_x * 4
    y = warp // (BN // WN) * WM + lane_y * TM
    results = np.zeros((1024, BN), int)
    for r in range(TM):
        for c in range(TN):
            np.add.at(results, (y + r, x + c // 4 * 32 + c % 4), 1)
    table[f"t {how} 32"] = {
        "results of the tile, computed": int((results[:BM] > 0).sum()),
        "computed more than once": int((results[:BM] > 1).sum()),
        "computed outside of the tile": int((results[BM:] > 0).sum()),
    }
ct.table("128 x 128 results of a block", table, corner="number of the warp")
computed = table["t % 32"]["results of the tile, computed"]
ct.claim(
    id="warp-number-modulo",
    source="SGEMM worklog, kernel 10, text",
    statement={
        "en": "The number of a thread's warp is threadIdx.x % warpSize. Then a "
        "block computes its whole tile",
        "zh": "线程所在的线程束的编号是 threadIdx.x % warpSize。这里数的是线程块算出了多少个结果",
    },
    predicted=BM * BN,
    measured=computed,
    unit="results of 128 × 128",
    verdict="confirmed" if computed == BM * BN else "refuted",
)
