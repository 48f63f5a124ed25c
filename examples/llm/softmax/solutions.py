# ---
# jupyter:
#   cudatut:
#     title: {en: "Softmax: solutions", zh: "Softmax：参考答案"}
#     requires: sm_80
#     extra: llm
# ---

# %% [markdown]
# Logarithms of shares, joined parts, and a warp per row.

# %% given-1
import numpy as np


# %% solution-1
def log_softmax(x):
    """The logarithm of each share, row by row; in the type of x."""
    shifted = x - x.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


# %% check-1
import cudatut as ct

rows_1 = ct.rng(0).standard_normal((6, 500), dtype="float32")
rows_1[1] += 200
rows_1[2] *= 100
rows_1[3] -= 1000
rows_1[4, 7] = 300
wide = rows_1.astype("float64")
wide -= wide.max(axis=1, keepdims=True)
want_1 = wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))
with np.errstate(all="ignore"):  # what a wrong one does is for the check
    got_1 = log_softmax(rows_1)
ct.check(got_1, want_1, name="log_softmax", rtol=1e-5)

# %% given-2
import numpy as np


def part(x):
    """The pair of one part."""
    if not len(x):
        return float("-inf"), 0.0
    return float(x.max()), float(np.exp(x - x.max()).sum())


# %% solution-2
def join(a, b):
    """The pair (largest, sum) of two parts, from the pairs of each."""
    largest = max(a[0], b[0])
    if largest == float("-inf"):  # -inf - -inf would be NaN
        return largest, 0.0
    return largest, float(
        a[1] * np.exp(a[0] - largest) + b[1] * np.exp(b[0] - largest)
    )


# %% check-2
import functools

import cudatut as ct

rng = ct.rng(1)
got_2, want_2 = [], []
for _ in range(20):
    row = 20 * rng.standard_normal(300)
    cuts = np.sort(rng.integers(0, 301, 6))
    parts = [part(piece) for piece in np.split(row, cuts)]
    parts += [part(row[:0])]
    order = rng.permutation(len(parts))
    whole = functools.reduce(join, [parts[i] for i in order])
    got_2.append(whole[1] if whole[0] == row.max() else np.nan)
    want_2.append(part(row)[1])
ct.check(
    np.array(got_2, "float64"),
    want_2,
    name="sum of the joined parts",
    rtol=1e-9,
)
nothing = join(part(row[:0]), part(row[:0]))
ct.check(np.array([nothing[1]]), [0.0], name="two empty parts")

# %% given-3
import numpy as np

# %% solution-3
code = r"""
__global__ void softmax_warp(const float *x, float *out, int width) {
  x += (size_t)blockIdx.x * width, out += (size_t)blockIdx.x * width;
  float largest = -INFINITY, sum = 0.0f;
  for (int c = threadIdx.x; c < width; c += 32) {
    const float next = fmaxf(largest, x[c]);
    sum = sum * expf(largest - next) + expf(x[c] - next);
    largest = next;
  }
  const float own = largest;
  for (int away = 16; away > 0; away /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, away));
  sum = own == -INFINITY ? 0.0f : sum * expf(own - largest);
  for (int away = 16; away > 0; away /= 2)
    sum += __shfl_xor_sync(~0u, sum, away);
  for (int c = threadIdx.x; c < width; c += 32)
    out[c] = expf(x[c] - largest) / sum;
}
"""

# %% check-3
import cudatut as ct

kernel = ct.Kernel(code, "softmax_warp")
for n, width in ((5, 1), (7, 33), (40, 1000)):
    numbers = ct.rng(width).standard_normal((n, width), dtype="float32")
    numbers[0] += 150
    x_3, out_3 = ct.to_device(numbers), ct.empty((n, width), "float32")
    kernel(x_3, out_3, width, grid=n, block=32)
    wide_3 = np.exp(
        numbers - numbers.max(axis=1, keepdims=True), dtype="float64"
    )
    ct.check(
        out_3,
        wide_3 / wide_3.sum(axis=1, keepdims=True),
        name=f"softmax_warp, {n} x {width}",
        rtol=2e-5,
    )
