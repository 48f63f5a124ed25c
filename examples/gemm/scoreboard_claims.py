# ---
# jupyter:
#   cudatut:
#     title: {en: "The scoreboard of matrix products: claims", zh: "矩阵乘法排行榜：有关说法"}
#     requires: sm_90
#     timeout_s: 60
#     sizes: {n: [4096, 40]}
# ---

# %% [markdown]
# A share of cuBLAS from another card, tried on this one.

# %% claim
from ladder import LADDER

import cudatut as ct

n = 4096
at = LADDER.bench(["warp_tile"], m=n, n=n, k=n, rounds=5, name=f"n = {n}")
if not ct.tool.running():
    share = 100 * at["warp_tile"].value / at["cuBLAS"].value
    ct.claim(
        id="warp-tiles-of-cublas",
        source="SGEMM worklog, kernel 10",
        statement={
            "en": "A kernel with warp tiles reaches 93.7 % of cuBLAS (4096, on an RTX A6000). Ours with warp tiles, and nothing "
            "that comes after it, on this GPU.",
            "zh": "用了线程束分块的 kernel 能达到 cuBLAS 的 93.7 %（4096，RTX A6000）。这里是我们的线程束分块 kernel（不含其后的优化）在这块 GPU 上的结果。",
        },
        predicted=93.7,
        measured=round(share, 1),
        unit="% of cuBLAS",
        verdict="confirmed" if share > 92 else "depends",
    )
