# ---
# jupyter:
#   cudatut:
#     title: {en: "Random numbers: solutions", zh: "随机数：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     sizes: {count: [1_048_576, 65_536]}
# ---

# %% [markdown]
# A choice that need not be stored, since it can be made again; integers without
# bias; and a smaller error from the same number of paths.

# %% given-1
import numpy as np

import cudatut as ct
from cudatut.book.primitives.random import philox

# %% solution-1
source = """
#include "primitives/random/philox.cuh"

extern "C" __global__ void dropout(const float* __restrict__ in,
                                   float* __restrict__ out, int n, float p,
                                   unsigned long long seed) {
  const Stream numbers = {seed, 0};
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const uint4 w = numbers.words(i, 0);
  const unsigned word[4] = {w.x, w.y, w.z, w.w};
  for (int k = 0; k < 4; ++k) {
    const int at = 4 * i + k;
    if (at >= n) return;
    out[at] = uniform_of(word[k]) < p ? 0.0f : in[at] / (1.0f - p);
  }
}
"""
dropout = ct.Kernel(source, "dropout")

# %% check-1
for n, p, seed in ((1, 0.5, 0), (1_027, 0.1, 7), (100_001, 0.9, 2**63)):
    kept = philox.uniform(philox.words(n, seed)) >= np.float32(p)
    grid = ct.cdiv(n, 1024)
    for what in (1, 2):  # the data, and the gradient
        x = ct.rng(what).standard_normal(n, dtype="float32")
        out = ct.empty(n, "float32")
        dropout(ct.to_device(x), out, n, p, seed, grid=grid, block=256)
        ct.check(out, np.where(kept, x / (1 - p), 0), name=f"n={n}, p={p}")

# %% given-2
import numpy as np

import cudatut as ct
from cudatut.book.primitives.random import philox


# %% solution-2
def dice(words, k):
    """words: uint32 [n, 4]. int64 [n], 0 to k - 1, or -1."""
    product = words.astype("uint64") * np.uint64(k)
    low, high = product & np.uint64(2**32 - 1), product >> np.uint64(32)
    fair = low >= np.uint64(2**32 % k)
    first = fair.argmax(axis=1)
    found = high[np.arange(len(words)), first].astype("int64")
    return np.where(fair.any(axis=1), found, -1)


# %% check-2
def by_hand(row, k):
    for w in map(int, row):
        if w * k % 2**32 >= 2**32 % k:
            return w * k // 2**32
    return -1


rows = philox.words(4_000, 5).reshape(-1, 4)
rows[:3] = np.array([[0], [2**32 - 1], [2**31]])
for k in (1, 2, 6, 100, 2**31 + 1, 3 * 2**30, 2**32 - 1):
    wanted = np.array([by_hand(row, k) for row in rows])
    ct.check(dice(rows, k), wanted, name=f"k={k}")

# %% given-3
import math

import numpy as np

import cudatut as ct
from cudatut.book.primitives.random import launch


# %% solution-3
def both(z, option):
    """Mean and standard error of the discounted payoff, two paths for a z."""
    z = z.astype("float64")
    spread = option.volatility * math.sqrt(option.years)
    drift = (option.rate - option.volatility**2 / 2) * option.years
    today = math.exp(-option.rate * option.years)

    def payoff(z):
        end = option.price * np.exp(drift + spread * z)
        return today * np.maximum(end - option.strike, 0)

    pair = (payoff(z) + payoff(-z)) / 2
    return float(pair.mean()), float(pair.std(ddof=1) / math.sqrt(len(z)))


# %% check-3
count = 1_048_576
option = launch.Option()
out = ct.empty(count, "float32")
launch.fill(out, "normal", seed=11)()
mean, error = both(out.get(), option)
apart = launch.price(option, 2 * count, seed=11)
verdicts = [
    abs(mean - option.exact()) < 4 * error,
    0 < error < 0.9 * apart.error,
]
ct.check(
    np.array(verdicts, "int32"),
    np.ones(2, "int32"),
    name="within 4 errors of the exact price; a smaller error",
)
ct.facts("error", {"both paths": error, "independent paths": apart.error})
