# ---
# jupyter:
#   cudatut:
#     title: {en: "The scoreboard of matrix products: claims", zh: "矩阵乘法排行榜：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     sizes: {n: [4096, 40]}
# ---

# %% [markdown]
# A share of cuBLAS from another card, tried on this one.

# %% claim
from cudatut.book.gemm.ladder.ladder import LADDER, Gemm

import cudatut as ct

n = 4096
problem = Gemm(n, n, n)
problem.check(LADDER["warp_tile"])
times = ct.bench(
    {
        "warp_tile": problem.launcher(LADDER["warp_tile"]),
        **problem.vendors(),
        "again": ct.vendor.gemm(problem.a, problem.b, problem.c),
    },
    flops=problem.flops,
    rounds=9,
    name=f"n = {n}",
)
if not ct.tool.running():
    cublas = times["cuBLAS"].median_us
    ct.claim(
        id="warp-tiles-of-cublas",
        source="SGEMM worklog, kernel 10",
        place={
            "en": "the table at the beginning of the worklog",
            "zh": "worklog 开头的表格",
        },
        form="printed",
        statement={
            "en": "A kernel with warp tiles reaches 93.7 % of the speed of "
            "cuBLAS (21,779.3 of 23,249.6 GFLOP/s, on an RTX A6000). Ours "
            "with warp tiles, and nothing that comes after it, at 4096.",
            "zh": "用了线程束分块的 kernel 达到 cuBLAS 速度的 93.7 %（21779.3 对 "
            "23249.6 GFLOP/s，RTX A6000）。这里是我们的线程束分块 kernel，"
            "不含其后的优化，尺寸为 4096。",
        },
        expected=21779.3 / 23249.6,
        measured=cublas / times["warp_tile"].median_us,
        unit="of the speed of cuBLAS",
        rule="gain",
        control=(
            {"en": "cuBLAS against itself", "zh": "cuBLAS 与它自己相比"},
            cublas / times["again"].median_us,
            (0.97, 1.03),
        ),
    )
