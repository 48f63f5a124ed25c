# ---
# jupyter:
#   cudatut:
#     title: {en: "The scoreboard of tensor cores: solutions", zh: "张量核心排行榜：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# A mean of ratios, and the share of work that counts.

# %% given-1
import numpy as np


# %% solution-1
def times_as_fast(ours, theirs):
    """How many times as fast ours is, over all shapes."""
    # A ratio and its inverse have logarithms that cancel.
    return np.exp(np.mean(np.log(theirs / ours)))


# %% check-1
import numpy as np
import cudatut as ct

times = ct.rng(0).uniform(1, 100, (2, 40))
one = times_as_fast(*times)
other = times_as_fast(*times[::-1])
even = times_as_fast(np.array([1.0, 4.0]), np.array([2.0, 2.0]))
double = times_as_fast(times[0], 2 * times[0])
found = np.array([one * other, even, double])
ct.check(found, np.array([1.0, 1.0, 2.0]), name="means of ratios", rtol=1e-6)


# %% given-2
import math


# %% solution-2
def useful(m, n, columns, sms):
    """Share of what could be computed that belongs to the result, 0 to 1."""
    tiles = math.ceil(m / 128) * math.ceil(n / columns)
    rounds = math.ceil(tiles / sms)
    return m * n / (rounds * sms * 128 * columns)


def best(m, n, sms):
    """64, 128, 192 or 256 columns."""
    # max takes the first of equal ones.
    return max((256, 192, 128, 64), key=lambda w: useful(m, n, w, sms))


# %% check-2
import numpy as np
import cudatut as ct

# What is wanted, counted tile by tile.
shapes = ((4096, 4096), (1536, 2816), (1536, 3072), (100, 100), (2304, 2304))
found, wanted, picked, right = [], [], [], []
for m, n in shapes:
    shares = {}
    for columns in (256, 192, 128, 64):
        corners = [
            (i, j) for i in range(0, m, 128) for j in range(0, n, columns)
        ]
        slots = len(corners)
        while slots % 132:
            slots += 1
        shares[columns] = m * n / (slots * 128 * columns)
        wanted.append(shares[columns])
        found.append(useful(m, n, columns, 132))
    right.append(max(shares, key=shares.get))
    picked.append(best(m, n, 132))
ct.check(
    np.array(found), np.array(wanted), name="shares of useful work", rtol=1e-6
)
ct.check(np.array(picked), np.array(right), name="columns that fit best")
