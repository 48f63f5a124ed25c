# ---
# jupyter:
#   cudatut:
#     title: {en: "Attention as it is written: solutions", zh: "照公式写的注意力：参考答案"}
#     requires: sm_80
#     extra: llm
# ---

# %% [markdown]
# Scores for a part of the queries, and only those that somebody sees.

# %% given-1
GIB = 1 << 30


# %% solution-1
def in_parts(memory, heads, n):
    """Queries at a time, and bytes written and read by all parts."""
    of_a_query = heads * n * (4 + 2)
    # Every score and weight is still written once and read once.
    return min(n, memory // of_a_query), 2 * n * of_a_query


# %% check-1
import numpy as np

import cudatut as ct

cases = (40 * GIB, 32, 4096), (40 * GIB, 32, 131072), (GIB, 9, 8192)
found = [in_parts(*case) for case in cases]
expected = [
    (4096, 6442450944),
    (1706, 6597069766656),
    (2427, 7247757312),
]
ct.check(np.array(found), expected, name="queries and bytes")

# %% given-2
import numpy as np

import cudatut as ct

# %% solution-2
scores_seen = ct.Kernel(
    """
#include "llm/attention/attention.cu"  // multiply, TILE

extern "C" __global__ void __launch_bounds__(256)
    scores_seen(const __nv_bfloat16* q, const __nv_bfloat16* k, float* scores,
                int m, int n, int depth, int shared_by) {
  const int left = blockIdx.x * TILE, top = blockIdx.y * TILE;
  const int last = min(top + TILE, m) - 1;  // the query that sees the most
  if (left > n - m + last) return;
  multiply<true>(q, k, scores, m, n, depth, shared_by);
}
""",
    "scores_seen",
)

# %% check-2
import numpy as np

import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16

heads, d, tile = 2, 64, 64
shapes = (64, 64), (130, 200), (1, 300), (200, 200)
hidden, expected = [], []
for m, n in shapes:
    rng = ct.rng(m)
    q, k = (rng.integers(-4, 5, (heads, x, d)) for x in (m, n))
    on_gpu = [ct.to_device(to_bf16(x)) for x in (q, k)]
    scores = ct.to_device(np.full((heads, m, n), np.nan, "float32"))
    grid = ct.cdiv(n, tile), ct.cdiv(m, tile), heads
    scores_seen(*on_gpu, scores, m, n, d, 1, grid=grid, block=256)
    got = scores.get()
    seen = np.arange(n) <= np.arange(n - m, n)[:, None]
    right = q @ k.transpose(0, 2, 1)
    ct.check(got[:, seen], right[:, seen], name=f"scores, {m} x {n}")
    hidden.append(int(np.isnan(got).sum()))
    whole = [
        (min(top + tile, m) - top) * (n - left if left + tile > n else tile)
        for top in range(0, m, tile)
        for left in range(0, n, tile)
        if not seen[top : top + tile, left : left + tile].any()
    ]
    expected.append(heads * sum(whole))
ct.check(np.array(hidden), expected, name="scores in tiles left out")
