# ---
# jupyter:
#   cudatut:
#     title: {en: "The scoreboard of matrix products: solutions", zh: "矩阵乘法排行榜：参考答案"}
#     requires: sm_80
#     timeout_s: 120
# ---

# %% [markdown]
# A rung for small matrices; and what the cost model loses against trying all plans.

# %% setup
import random
from statistics import geometric_mean, median

import numpy as np
import sgemm
from ladder import LADDER, Gemm
from shapes import SHAPES

import cudatut as ct
from cudatut import tool
from cudatut.ladder import read_rung
from cudatut.tuning import compile_ahead, take_turns

SMS = ct.device().sm_count

# %% solution-1
mine = read_rung("gemm/scoreboard_solutions.cu")
for trial in LADDER.trials if ct.size(1, 0) else LADDER.trials[:6]:
    LADDER.problem(**trial).check(mine)  # ends in ct.check


def contest(n):
    """The rung beside three others and cuBLAS, on n x n x n."""
    rungs = (
        [mine]
        if tool.running()
        else ["conflict_free", "double_buffer", mine, "final"]
    )
    return LADDER.bench(rungs, name=f"n = {n}", rounds=20, m=n, n=n, k=n)


ct.facts(
    f"blocks, for {SMS} SMs",
    {
        f"{n}: blocks of {side} x {side}": ct.cdiv(n, side) ** 2
        for n in (256, 1024)
        for side in (128, 32)
    },
)

# %% small
small = contest(ct.size(256, 64))

# %% larger
larger = contest(ct.size(1024, 64))

# %% solution-2
few = (
    [shape for shape in SHAPES if np.prod(shape) < 5e9][:8]
    if ct.size(1, 0)
    else [(40, 50, 60)]
)
if not tool.running():
    compile_ahead(
        [
            ("gemm/final.cu", c.name(vec, False, False))
            for c in sgemm.CONFIGS
            for vec in (4, 1)
        ]
    )
rows, lost = {}, []
for m, n, k in few:
    problem = Gemm(m, n, k)
    chosen = sgemm.plan(m, n, k, SMS)
    runs = {}
    for plan in dict.fromkeys([chosen, *sgemm.plans(m, n, k, SMS)]):
        config, splits, whole = plan
        tiles = ct.cdiv(m, config.bm) * ct.cdiv(n, config.bn)
        how = {"config": config, "splits": splits}
        if splits > 1 and whole < tiles:
            how["whole"] = whole
        runs[plan] = sgemm.prepare(problem.a, problem.b, problem.c, **how)
        if tool.running():
            break
        runs[plan]()
    ct.poison(problem.c)
    runs[chosen]()
    problem.compare(f"{m} x {n} x {k}")
    if tool.running():
        continue
    # First all of them a few times, then the best of these and the chosen one anew: the smallest of many is too small.
    first = {
        plan: median(t)
        for plan, t in take_turns(runs, 5, random.Random(0)).items()
    }
    best = min(first, key=first.get)
    again = take_turns(
        {"chosen": runs[chosen], "best": runs[best]}, 25, random.Random(1)
    )
    lost.append(median(again["chosen"]) / median(again["best"]))
    told = [
        f"{p.config.bm} x {p.config.bn}, {p.splits}" for p in (chosen, best)
    ]
    rows[f"{m} x {n} x {k}: plans"] = len(runs)
    rows[f"{m} x {n} x {k}: chosen / best"] = " / ".join(told)
    rows[f"{m} x {n} x {k}: time of chosen / of best"] = lost[-1]

# %% lost
if lost:
    rows["geometric mean"] = geometric_mean(lost)
ct.facts("what the cost model loses", rows)
