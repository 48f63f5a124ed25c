"""Attention in float64, and how far from it a kernel's results may be.

expected, mean = attention(q, keys, values, causal=True)
ct.check(to_float(out.get()), expected, **bounds(mean))
"""

import numpy as np

from cudatut.book.numbers.bf16 import to_float

ROUNDING = 1.05 / 256  # of weights and results to bf16, with a little room


def attention(
    q: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    causal: bool = False,
    window: int = 0,
    softcap: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Of one sequence, and the same of |values|, by which errors scale; a query
    that sees no key gets zeros.

    q: bf16 as uint16, [queries, heads, d], those of the last tokens; keys and
    values: [tokens, kv_heads, d]. window, softcap: as in flash.py.
    """
    q, keys, values = (to_float(x).astype("float64") for x in (q, keys, values))
    q_len, heads, d = q.shape
    k_len, kv_heads = keys.shape[:2]
    at, key = np.arange(q_len)[:, None] + k_len - q_len, np.arange(k_len)
    seen = key <= at if causal else np.ones((q_len, k_len), bool)
    if window:
        seen = seen & (key > at - window)
    out, mean = np.zeros((2, q_len, heads, d))
    some = seen.any(axis=1)
    for head in range(heads):
        group = head // (heads // kv_heads)
        s = q[:, head] @ keys[:, group].T * d**-0.5
        if softcap:
            s = softcap * np.tanh(s / softcap)
        s[~seen] = -np.inf
        p = np.exp(s[some] - s[some].max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        out[some, head] = p @ values[:, group]
        mean[some, head] = p @ abs(values[:, group])
    return out, mean


def bounds(mean: np.ndarray) -> dict[str, float]:
    """For `ct.check`."""
    return {"rtol": ROUNDING, "atol": ROUNDING * float(mean.max()) + 1e-5}
