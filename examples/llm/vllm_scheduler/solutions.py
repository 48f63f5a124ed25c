# ---
# jupyter:
#   cudatut:
#     title: {en: "vLLM's scheduler, rule by rule: solutions", zh: "逐条看 vLLM 的调度规则：参考答案"}
#     requires: sm_80
#     extra: llm
#     alone: false
# ---

# %% [markdown]
# Two rules that stand in vLLM's source, as functions.

# %% given-1
import numpy as np


# %% solution-1
def passed(now, arrivals, running, last, factor):
    if factor <= 0 or not arrivals or not running:
        return True
    return now - min(arrivals) > factor * last


# %% check-1
import cudatut as ct
import numpy as np

cases = {
    # now, arrivals, running, seconds of the last, factor
    (5.0, (4.0, 4.5), 3, 0.5, 1.0): True,
    (5.0, (4.5, 4.0), 3, 0.5, 1.0): True,
    (5.0, (4.75, 4.5), 3, 0.5, 1.0): False,
    (5.0, (4.75, 4.5), 3, 0.5, 0.5): True,
    (5.0, (4.75,), 3, 0.5, 2.0): False,
    (5.0, (4.75,), 0, 0.5, 2.0): True,
    (5.0, (4.75,), 3, 0.5, 0.0): True,
    (5.0, (5.0,), 3, 0.5, 0.0): True,
    (5.0, (), 3, 0.5, 2.0): True,
}
given = np.array([passed(*case) for case in cases])
ct.check(
    given,
    np.array(list(cases.values())),
    name="whether prompts may be computed",
)

# %% given-2
import numpy as np


# %% solution-2
def admits(tokens, budget, free, spare, running, whole, block_size):
    must_fit = tokens if whole else min(tokens, budget)
    needed = -(-must_fit // block_size)
    return needed + (spare if running else 0) <= free


# %% check-2
import cudatut as ct
import numpy as np

cases = {
    # tokens, budget, free, spare, running, whole, block size
    (100, 512, 7, 0, 4, True, 16): True,
    (100, 512, 6, 0, 4, True, 16): False,
    (100, 512, 6, 0, 4, False, 16): False,
    (2000, 512, 40, 0, 4, True, 16): False,
    (2000, 512, 40, 0, 4, False, 16): True,
    (2000, 512, 40, 9, 4, False, 16): False,
    (2000, 512, 40, 8, 4, False, 16): True,
    (2000, 512, 125, 9, 4, True, 16): False,
    (2000, 512, 125, 9, 0, True, 16): True,
    (33, 512, 2, 0, 1, True, 32): True,
    (65, 512, 2, 0, 1, True, 32): False,
}
given = np.array([admits(*case) for case in cases])
ct.check(given, np.array(list(cases.values())), name="who is admitted")
