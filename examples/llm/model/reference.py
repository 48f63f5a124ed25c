"""The whole model in NumPy, in float32: what every kernel of this part is
compared with.

    model = Reference(Checkpoint.open(path))
    logits = model.forward([504, 3575, 282])      # [3, vocab]
    logits = model.forward([4649])                # the fourth token: [1, vocab]

n: tokens of this call, t: tokens of the sequence so far, these included; d:
elements of a head.
"""

from collections.abc import Callable, Sequence

import numpy as np

from cudatut.book.llm.model.checkpoint import Checkpoint, Config


# --8<-- [start:pieces]
def rms_norm(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    """Each row of x, [n, dim], scaled to a root mean square of 1, then by
    `weight`.
    """
    mean_square = np.mean(x * x, axis=-1, keepdims=True)
    return x / np.sqrt(mean_square + np.float32(eps)) * weight


def rotate(x: np.ndarray, positions: np.ndarray, theta: float) -> np.ndarray:
    """RoPE: turn pair i of each head by positions * theta^(-2i/d). x: [n,
    heads, d]; pairs are adjacent elements.
    """
    d = x.shape[-1]
    frequencies = theta ** (-np.arange(0, d, 2) / d)
    angles = np.multiply.outer(positions, frequencies)[:, None, :]
    cos, sin = (f(angles).astype("float32") for f in (np.cos, np.sin))
    even, odd = x[..., 0::2], x[..., 1::2]
    out = np.empty_like(x)
    out[..., 0::2] = even * cos - odd * sin
    out[..., 1::2] = even * sin + odd * cos
    return out


def attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, positions: np.ndarray
) -> np.ndarray:
    """Causal attention. q: [n, heads, d], at `positions`, [n]; k and v: [t,
    kv_heads, d], at 0 to t - 1.
    """
    n, heads, d = q.shape
    t, kv_heads, _ = k.shape
    # GQA: consecutive query heads share a KV head.
    q = q.reshape(n, kv_heads, heads // kv_heads, d)
    scores = np.einsum("nkgd,tkd->kgnt", q, k, optimize=True)
    scores /= np.sqrt(np.float32(d))
    scores[..., np.arange(t) > positions[:, None]] = -np.inf
    weights = softmax(scores)
    out = np.einsum("kgnt,tkd->nkgd", weights, v, optimize=True)
    return out.reshape(n, heads * d)


def softmax(x: np.ndarray) -> np.ndarray:
    """Of the last axis; the largest is subtracted first, so that no exponential
    overflows.
    """
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def silu(x: np.ndarray) -> np.ndarray:
    """x times its sigmoid."""
    with np.errstate(over="ignore"):  # exp(-x) may be infinite: x / inf is 0
        return x / (1 + np.exp(-x))


# --8<-- [end:pieces]


# --8<-- [start:model]
# --8<-- [start:forward]
def forward(
    config: Config,
    w: dict[str, np.ndarray],
    tokens: np.ndarray,
    positions: np.ndarray,
    attend: Callable[..., np.ndarray],
    wanted: np.ndarray | slice = slice(None),
) -> np.ndarray:
    """Logits of the tokens that are `wanted` (default: all), [n, vocab], in
    float32.

    w: weights by name, float32. tokens and positions: [n], of one sequence or
    of many: only attention tells them apart. attend(layer, q, k, v): keeps k
    and v, [n, kv_heads, d], and returns the attention of q, [n, heads, d], as
    [n, heads * d].
    """
    c, n = config, len(tokens)
    x = w["embedding"][tokens]
    for i in range(c.layers):
        name = f"layers.{i}."
        h = rms_norm(x, w[name + "attention_norm"], c.rms_eps)
        q = (h @ w[name + "q"].T).reshape(n, c.heads, c.head_dim)
        k = (h @ w[name + "k"].T).reshape(n, c.kv_heads, c.head_dim)
        v = (h @ w[name + "v"].T).reshape(n, c.kv_heads, c.head_dim)
        q = rotate(q, positions, c.rope_theta)
        k = rotate(k, positions, c.rope_theta)
        x = x + attend(i, q, k, v) @ w[name + "o"].T
        h = rms_norm(x, w[name + "ffn_norm"], c.rms_eps)
        gate, up = h @ w[name + "gate"].T, h @ w[name + "up"].T
        x = x + (silu(gate) * up) @ w[name + "down"].T
    return rms_norm(x[wanted], w["norm"], c.rms_eps) @ w["head"].T


# --8<-- [end:forward]


class Reference:
    """The model and one sequence, whose keys and values it keeps: the KV cache."""

    def __init__(self, checkpoint: Checkpoint):
        self.config, self.weights = checkpoint.config, checkpoint.arrays()
        self.reset()

    def reset(self) -> None:
        """Forget the sequence."""
        c = self.config
        empty = np.empty((0, c.kv_heads, c.head_dim), "float32")
        self.keys, self.values = [empty] * c.layers, [empty] * c.layers

    def forward(self, tokens: Sequence[int]) -> np.ndarray:
        """Append n tokens to the sequence; their logits, [n, vocab]. Raises
        ValueError where the context ends.
        """
        past, n = len(self.keys[0]), len(tokens)
        if past + n > self.config.context:
            raise ValueError(
                f"the model knows {self.config.context} positions; {past + n} tokens are too many"
            )
        positions = np.arange(past, past + n)

        def attend(i, q, k, v):
            self.keys[i] = np.concatenate([self.keys[i], k])
            self.values[i] = np.concatenate([self.values[i], v])
            return attention(q, self.keys[i], self.values[i], positions)

        return forward(
            self.config, self.weights, np.asarray(tokens), positions, attend
        )


# --8<-- [end:model]


def greedy(model: Reference, prompt: Sequence[int], count: int) -> list[int]:
    """The next `count` tokens after a prompt, each the most probable one; the
    sequence begins anew.
    """
    model.reset()
    found: list[int] = []
    tokens = list(prompt)
    while len(found) < count:
        tokens = [int(model.forward(tokens)[-1].argmax())]
        found += tokens
    return found
