# ---
# jupyter:
#   cudatut:
#     title: {en: "FlashAttention, the principle: solutions", zh: "FlashAttention 原理：参考答案"}
#     requires: sm_75
#     extra: llm
#     alone: false
# ---

# %% [markdown]
# A tile more, and bytes with a causal mask.

# %% given-1
import numpy as np


# %% solution-1
def add_tile(base, total, o, scores, values):
    most = max(base, scores.max(initial=-np.inf))
    if most == -np.inf:  # nothing was seen yet, and is not now
        return base, total, o
    factor, p = np.exp(base - most), np.exp(scores - most)
    return most, total * factor + p.sum(), o * factor + p @ values


# %% check-1
import cudatut as ct

rng = ct.rng(1)
scores = np.sort(30 * rng.standard_normal(100))
scores[:20] = -np.inf
values = rng.standard_normal((100, 8))
weights = np.exp(scores - scores.max())
expected = weights @ values / weights.sum()
for size in (100, 64, 7, 1):
    state = -np.inf, 0.0, np.zeros(8)
    for first in range(0, 100, size):
        tile = slice(first, first + size)
        state = add_tile(*state, scores[tile], values[tile])
    got = state[2] / state[1]
    ct.check(got, expected, name=f"result, tiles of {size}", rtol=1e-9)

# %% given-2
import numpy as np


# %% solution-2
def elements_moved(n, d, bm, bn):
    moved = 2 * n * d  # queries and results
    for top in range(0, n, bm):
        end = min(n, top + bm)  # the first key that nobody sees
        moved += 2 * d * min(n, -(-end // bn) * bn)
    return moved


# %% check-2
import cudatut as ct


def counted(n, d, bm, bn):
    """Elements that a program touches, one by one."""
    moved = 2 * n * d
    for top in range(0, n, bm):
        last = min(n, top + bm) - 1
        for first in range(0, n, bn):
            if first <= last:  # some query sees the tile's first key
                moved += 2 * d * len(range(n)[first : first + bn])
    return moved


cases = [(64, 64, 64, 32), (1000, 64, 64, 32), (33, 8, 7, 5), (100, 16, 8, 64)]
got = np.array([elements_moved(*case) for case in cases])
ct.check(got, [counted(*case) for case in cases], name="elements moved")
