# ---
# jupyter:
#   cudatut:
#     title: {en: "The scoreboard of sums: solutions", zh: "求和排行榜：参考答案"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# A walk that remembers what it rounds away; and the length at which a float32 sum of ones stops growing.

# %% setup
import math

import numpy as np
from ladder import LADDER, Sum

import cudatut as ct
from cudatut.ladder import read_rung

EPS = float(np.finfo("float32").eps)

# %% solution-1
mine = read_rung("reduction/scoreboard_solutions.cu")
for trial in LADDER.trials:
    LADDER.problem(**trial).check(mine)

positive = ct.rng(2).random(ct.size(1 << 22, 1 << 12), dtype="float32")
problem, exact = Sum(data=positive), math.fsum(positive.tolist())
errors = {}
for rung in (LADDER["few_blocks"], mine, LADDER["limit"]):
    run = problem.launcher(rung)
    run()
    errors[rung.name] = ((float(run.out.get()[0]) - exact) / exact / EPS, "eps")
errors["nearest float32"] = (
    (float(np.float32(exact)) - exact) / exact / EPS,
    "eps",
)
ct.facts(f"relative error, {positive.size} float32 in [0, 1)", errors)
bench = LADDER.bench(["few_blocks", mine, "limit"], n=ct.size(1 << 26, 1 << 14))

# %% solution-2
length = ct.size(1 << 25, 1 << 12)
ones = np.ones(length, "float32")
running = np.cumsum(ones)  # in float32, one after another
stops = int(np.argmax(running)) + 1
ct.facts(
    f"{length} ones in float32",
    {
        "predicted: stops growing at": min(
            2**24, length
        ),  # 2 / eps: there 1 is half a spacing
        "measured: stops growing at": stops,
        "one after another": float(running[-1]),
        "NumPy, pairwise": float(ones.sum()),
    },
)
Sum(data=ones).check(LADDER["naive"])
Sum(data=ones).check(LADDER["limit"])
