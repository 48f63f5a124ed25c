# ---
# jupyter:
#   cudatut:
#     title: {en: "Scoreboard of primitives: solutions", zh: "并行算法排行榜：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# A mean of ratios, an interval for a median, and a sort by one block.

# %% given-1
import math


# %% solution-1
def mean_ratio(ratios):
    """One number for many ratios."""
    # The geometric mean: ratios of 2 and of a half cancel.
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


# %% check-1
import cudatut as ct

ratios = ct.rng(0).uniform(0.3, 3, 40).tolist()
there = mean_ratio(ratios)
back = mean_ratio([1 / ratio for ratio in ratios])
ct.check([there * back], [1.0], name="both ways", rtol=1e-9)
ct.check([mean_ratio([1.5] * 3)], [1.5], name="equal ratios", rtol=1e-9)

# %% given-2
import math

import numpy as np


# %% solution-2
def rank(n):
    """The largest k for which x[k] to x[n - 1 - k] has the median often
    enough."""
    # The median lies below x[k] if at most k of n ratios are below it.
    outside, k = 2 / 2**n, 0
    while outside + 2 * math.comb(n, k + 1) / 2**n <= 0.05:
        k += 1
        outside += 2 * math.comb(n, k) / 2**n
    return k


# %% check-2
import cudatut as ct


def missed(contests, k):
    """How often the interval does not have the median, 0, of 100."""
    low, high = contests[:, k], contests[:, -1 - k]
    return 100 * float(((low > 0) | (high < 0)).mean())


for n in (6, 9, 20, 40, 100):
    contests = np.sort(ct.rng(n).standard_normal((20_000, n)), axis=1)
    k = rank(n)
    # No more than 5, and with the next k more: within what chance allows.
    most = k + 1 >= n // 2 or missed(contests, k + 1) > 4.4
    found = np.array([missed(contests, k) <= 5.6, most], int)
    ct.check(found, [1, 1], name=f"rank, n={n}", rtol=0)

# %% given-3
import numpy as np

import cudatut as ct

# %% solution-3
sort_few = ct.Kernel(
    """
__global__ void sort_few(const unsigned* keys, unsigned* out, int n) {
  __shared__ unsigned tile[1024];
  for (int i = threadIdx.x; i < 1024; i += 512)
    tile[i] = i < n ? keys[i] : 0xffffffffu;
  __syncthreads();
  for (int size = 2; size <= 1024; size *= 2) {
    for (int step = size / 2; step > 0; step /= 2) {
      const int t = threadIdx.x;
      const int i = t / step * 2 * step + t % step;
      const unsigned a = tile[i], b = tile[i + step];
      const bool ascending = (i & size) == 0;
      if ((a > b) == ascending) {
        tile[i] = b;
        tile[i + step] = a;
      }
      __syncthreads();
    }
  }
  for (int i = threadIdx.x; i < n; i += 512) out[i] = tile[i];
}
""",
    "sort_few",
)

# %% check-3
import cudatut as ct

for n in (1, 31, 33, 255, 512, 513, 1000, 1024):
    host = ct.rng(n).integers(0, 1 << 32, n, dtype="uint32")
    host[::3] = host[0]  # equal keys
    out = ct.empty(n, "uint32")
    ct.poison(out)
    sort_few(ct.to_device(host), out, n, grid=1, block=512)
    ct.check(out, np.sort(host), name=f"n={n}", rtol=0)
