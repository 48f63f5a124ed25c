# ---
# jupyter:
#   cudatut:
#     title: {en: "FlashAttention, the principle: claims", zh: "FlashAttention 原理：有关说法"}
#     requires: sm_75
#     extra: llm
#     alone: false
#     sizes: {n: [2048, 256]}
# ---

# %% [markdown]
# Does computing in tiles cost precision? Both forms in fp32, against float64.

# %% setup
import numpy as np

import cudatut as ct

n = 2048
d = 64
q, k, v = ct.rng(0).standard_normal((3, n, d), dtype="float32")


def written(q, k, v):
    s = q @ k.T * q.dtype.type(d**-0.5)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True) @ v


def tiled(q, k, v, rescale=True, size=32):
    scale = q.dtype.type(d**-0.5)
    base = np.full((len(q), 1), -np.inf, q.dtype)
    total, o = np.zeros_like(base), np.zeros_like(q)
    for j in range(0, len(k), size):
        s = q @ k[j : j + size].T * scale
        most = np.maximum(base, s.max(axis=1, keepdims=True))
        factor = np.exp(base - most) if rescale else q.dtype.type(1)
        p = np.exp(s - most)
        total = total * factor + p.sum(axis=1, keepdims=True)
        o, base = o * factor + p @ v[j : j + size], most
    return o / total


exact = written(*(x.astype("float64") for x in (q, k, v)))


def error(found):
    assert found.dtype == np.float32
    return float(abs(found - exact).max())


# %% claim-precision
ct.claim(
    id="flash-attention-precision",
    source="CUDATutorial 17/01",
    place={
        "en": "section 3.1, last sentence",
        "zh": "3.1 节，最后一句",
    },
    form="said",
    statement={
        "en": "Computing in tiles makes attention more efficient without giving "
        "up precision. Largest error in fp32, tiled over written; as the "
        "authors of FlashAttention do, we count up to twice as no loss.",
        "zh": "分块计算在不牺牲精度的前提下提升注意力的效率。这里是 fp32 下的最大误差之比：分块除以照公式写；"
        "与 FlashAttention 作者的测试一样，两倍以内算没有损失。",
    },
    expected=2.0,
    measured=error(tiled(q, k, v)) / error(written(q, k, v)),
    unit="×",
    rule="below",
    control=(
        {
            "en": "tiled, but sums are not rescaled",
            "zh": "分块，但不给之前的和乘系数",
        },
        error(tiled(q, k, v, rescale=False)) / error(written(q, k, v)),
        ("TODO", "what it has to be"),
    ),
)
