# ---
# jupyter:
#   cudatut:
#     title: {en: "What changes on Blackwell: solutions", zh: "Blackwell 上有什么不同：参考答案"}
#     requires: sm_75
#     alone: false
# ---

# %% [markdown]
# Four bits at a time, and a scale that is chosen by its errors.

# %% given-1
import numpy as np

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


# %% solution-1
def unpack(packed, scales, whole):
    words = np.stack([packed & 15, packed >> 4], axis=1).reshape(-1)
    signs = np.where(words & 8, -1.0, 1.0)
    return signs * E2M1[words & 7] * np.repeat(scales, 16) * whole


# %% check-1
import numpy as np
import cudatut as ct

rng = ct.rng(0)
words = rng.integers(0, 16, 16 * 40)
scales = 2.0 ** rng.integers(-3, 4, 40) * 1.125
expected = np.empty(len(words))
for i, word in enumerate(words):
    value = E2M1[word % 8] * scales[i // 16] * 0.25
    expected[i] = -value if word >= 8 else value
packed = (words[0::2] + 16 * words[1::2]).astype("uint8")
ct.check(unpack(packed, scales, 0.25), expected, name="numbers")

# %% given-2
import numpy as np

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def round_e2m1(x):
    """To the nearest number of e2m1; what is too large becomes 6."""
    nearest = np.abs(np.abs(x)[..., None] - E2M1).argmin(axis=-1)
    return np.copysign(E2M1[nearest], x)


def squared_error(block, scale):
    return np.sum((round_e2m1(block / scale) * scale - block) ** 2)


# %% solution-2
def scale(block):
    rule = 2.0 ** (np.floor(np.log2(np.abs(block).max())) - 2)
    # Twice as large, nothing is cut down, but all numbers have longer steps.
    return min(rule, 2 * rule, key=lambda s: squared_error(block, s))


# %% check-2
import numpy as np
import cudatut as ct

ours = rule = 0.0
for seed in range(200):
    block = ct.rng(seed).standard_normal(32)
    chosen = scale(block)
    assert np.log2(chosen) % 1 == 0, "the scale is no power of two"
    ours += squared_error(block, chosen)
    top = np.floor(np.log2(np.abs(block).max()))
    rule += squared_error(block, 2.0 ** (top - 2))
ct.check(
    np.array(max(ours / rule, 0.95)),
    0.95,
    name="squared error, by that of the rule: 0.95 or less",
)
