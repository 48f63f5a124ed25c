# ---
# jupyter:
#   cudatut:
#     title: {en: "The scoreboard of sums: solutions", zh: "求和排行榜：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [67108864, 16384]
#       few: [4194304, 4096]
#       length: [33554432, 4096]
# ---

# %% [markdown]
# A walk that remembers what it rounds away; and the length at which a float32
# sum of ones stops growing.

# %% given-1
import numpy as np


# %% solution-1
def stops_growing_at():
    """The number of ones at which a running float32 sum of ones stops."""
    # eps = 2^-23 is the spacing of floats from 1 to 2. From 2^24 on the spacing
    # is 2, and 2^24 + 1 is rounded to the even neighbor, 2^24.
    return 2 / np.finfo("float32").eps


# %% check-1
import cudatut as ct

running = np.cumsum(np.ones(1 << 25, "float32"))  # one after another
measured = int(np.argmax(running)) + 1
ct.check([float(stops_growing_at())], [float(measured)], name="stops at")

# %% [markdown]
# A tree gets it right.

# %% tree-1
from cudatut.book.reduction.ladder.ladder import LADDER, Sum

length = 33_554_432
ones = np.ones(length, "float32")
ct.facts(
    f"{length} ones in float32",
    {
        "one after another": float(np.cumsum(ones)[-1]),
        "NumPy, pairwise": float(ones.sum()),
    },
)
Sum(data=ones).check(LADDER["naive"])
Sum(data=ones).check(LADDER["limit"])

# %% given-2
import math

import numpy as np
import cudatut as ct

# %% solution-2
kahan = ct.Kernel(
    """
// One thread adds n floats.
__global__ void kahan(const float* x, float* out, int n) {
  float sum = 0, lost = 0;
  for (int i = 0; i < n; ++i) {
    float element = x[i] - lost;
    float larger = sum + element;
    lost = (larger - sum) - element;  // what this addition rounded away
    sum = larger;
  }
  out[0] = sum;
}
""",
    "kahan",
)

# %% check-2
import cudatut as ct

for n in (1, 31, 33, 100_000):
    x = ct.rng(n).random(n, dtype="float32")
    out = ct.empty(1, "float32")
    kahan(ct.to_device(x), out, n, grid=1, block=1)
    exact = math.fsum(x.tolist())
    ct.check(out, [exact], name=f"n={n}", rtol=2.5e-7, atol=0)

# %% [markdown]
# The same as a rung: each thread of a grid compensates its own sum.

# %% rung-2
from cudatut.book.reduction.ladder.ladder import LADDER, Sum

n = 67_108_864
few = 4_194_304
EPS = float(np.finfo("float32").eps)
mine = ct.read_rung("reduction/scoreboard/scoreboard_solutions.cu")
for trial in LADDER.trials:
    LADDER.problem(**trial).check(mine)

positive = ct.rng(2).random(few, dtype="float32")
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
bench = LADDER.bench(["few_blocks", mine, "limit"], n=n)
