# ---
# jupyter:
#   cudatut:
#     title: {en: "Double buffering: how many stages", zh: "双缓冲：要几个阶段"}
#     requires: sm_80
#     timeout_s: 120
#     sizes: {large: [4096, 128]}
# ---

# %% [markdown]
# How many tiles must be on their way? As many as fit into the time between
# issue and use, says the formula. Here is what further stages bring.

# %% setup
from dataclasses import replace

from cudatut.book.gemm.ladder.ladder import LADDER, Gemm

import cudatut as ct

# %% stages
STAGES = {8: (2, 3, 4), 16: (2, 3)}
multi = {
    f"depth {bk}, {stages} stages": replace(
        LADDER["multi_stage"],
        name=f"depth {bk}, {stages} stages",
        kernel=f"sgemm_multi_stage<128,128,{bk},32,64,8,8,{stages}>",
    )
    for bk, several in STAGES.items()
    for stages in several
}
multi["async_copy, depth 8"] = replace(
    LADDER["async_copy"],
    name="async_copy, depth 8",
    kernel="sgemm_async_copy<128,128,8,32,64,8,8>",
)
for rung in multi.values():
    Gemm(129, 260, 132, integers=True).check(rung)
large = 4096
problem = Gemm(large, large, large)
times = ct.bench(
    {name: problem.launcher(rung) for name, rung in multi.items()},
    flops=problem.flops,
    rounds=11,
    name=f"multi_stage, {large} x {large} x {large}",
)


def gain(slow, fast):
    return times[slow].median_us / times[fast].median_us


two = "depth 8, 2 stages"
ct.facts(
    "stages",
    {
        "times as fast, depth 16, 3 stages": gain(
            "depth 16, 2 stages", "depth 16, 3 stages"
        ),
        "times as fast, depth 8, 3 stages": gain(two, "depth 8, 3 stages"),
        "times as fast, depth 8, 4 stages": gain(two, "depth 8, 4 stages"),
        "time of async_copy, against 2 stages": gain(
            "async_copy, depth 8", two
        ),
    },
)
