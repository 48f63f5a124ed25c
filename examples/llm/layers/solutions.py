# ---
# jupyter:
#   cudatut:
#     title: {en: "RMSNorm, LayerNorm, RoPE, SwiGLU: solutions", zh: "RMSNorm、LayerNorm、RoPE 与 SwiGLU：参考答案"}
#     requires: sm_80
#     extra: llm
# ---

# %% [markdown]
# Rows in another order, joined variances, and a norm by one warp.

# %% given-1
import numpy as np


def turn(x, positions, halves):
    """RoPE of x, [n, heads, d], in either style."""
    d = x.shape[-1]
    angles = np.multiply.outer(positions, 1e5 ** (-np.arange(0, d, 2) / d))
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    first, second = slice(0, None, 2), slice(1, None, 2)
    if halves:
        first, second = slice(0, d // 2), slice(d // 2, None)
    out = np.empty_like(x)
    out[..., first] = x[..., first] * cos - x[..., second] * sin
    out[..., second] = x[..., first] * sin + x[..., second] * cos
    return out


# %% solution-1
def to_pairs(weights, heads):
    """The same rows in the order for neighbors."""
    halves = weights.reshape(heads, 2, -1, weights.shape[1])
    return halves.swapaxes(1, 2).reshape(weights.shape)


# %% check-1
import cudatut as ct

heads, d, inputs, tokens = 3, 16, 20, 12
rng = ct.rng(0)
w_q, w_k = rng.standard_normal((2, heads * d, inputs))
hidden = rng.standard_normal((tokens, inputs))


def scores(w_q, w_k, halves):
    at = np.arange(tokens)
    q, k = (
        turn((hidden @ w.T).reshape(tokens, heads, d), at, halves)
        for w in (w_q, w_k)
    )
    return np.einsum("nhd,mhd->hnm", q, k)


ct.check(
    scores(to_pairs(w_q, heads), to_pairs(w_k, heads), False),
    scores(w_q, w_k, True),
    name="scores",
    rtol=1e-9,
)

# %% given-2
import numpy as np


def part(x):
    """Of one part: count, mean, sum of squared differences to it."""
    if not len(x):
        return 0, 0.0, 0.0
    return len(x), float(x.mean()), float(((x - x.mean()) ** 2).sum())


# %% solution-2
def join(a, b):
    """(count, mean, squares) of two parts, from those of each."""
    count = a[0] + b[0]
    mean = (a[0] * a[1] + b[0] * b[1]) / max(count, 1)
    apart = (b[1] - a[1]) ** 2 * a[0] * b[0] / max(count, 1)
    return count, mean, a[2] + b[2] + apart


# %% check-2
import functools

import cudatut as ct

rng = ct.rng(1)
got_2, want_2 = [], []
for _ in range(20):
    row = 10_000 + rng.standard_normal(300)
    cuts = np.sort(rng.integers(0, 301, 6))
    parts = [part(piece) for piece in np.split(row, cuts)] + [part(row[:0])]
    order = rng.permutation(len(parts))
    got_2.append(functools.reduce(join, [parts[i] for i in order])[2])
    want_2.append(part(row)[2])
ct.check(np.array(got_2), want_2, name="squares", rtol=1e-6)

# %% given-3
import numpy as np

# %% solution-3
code = r"""
__global__ void rms_norm_warp(const float *x, const float *weight, float *out,
                              int width, float eps) {
  x += (size_t)blockIdx.x * width, out += (size_t)blockIdx.x * width;
  float squares = 0.0f;
  for (int c = threadIdx.x; c < width; c += 32) squares += x[c] * x[c];
  for (int away = 16; away > 0; away /= 2)
    squares += __shfl_xor_sync(~0u, squares, away);
  const float scale = rsqrtf(squares / width + eps);
  for (int c = threadIdx.x; c < width; c += 32)
    out[c] = x[c] * scale * weight[c];
}
"""

# %% check-3
import cudatut as ct

kernel = ct.Kernel(code, "rms_norm_warp")
for n, width in ((5, 1), (7, 33), (40, 1000)):
    x_3 = ct.rng(width).standard_normal((n, width), dtype="float32")
    weight_3 = ct.rng(2).random(width, dtype="float32")
    out_3 = ct.empty((n, width), "float32")
    on_gpu = ct.to_device(x_3), ct.to_device(weight_3)
    kernel(*on_gpu, out_3, width, 1e-5, grid=n, block=32)
    wide_3 = x_3.astype("float64")
    root = np.sqrt((wide_3**2).mean(axis=1, keepdims=True) + 1e-5)
    ct.check(
        out_3,
        wide_3 / root * weight_3,
        name=f"rms_norm_warp, {n} x {width}",
        rtol=1e-5,
    )
