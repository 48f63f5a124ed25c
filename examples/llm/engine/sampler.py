"""From logits to a token: the references of the sampling kernels, and
speculation by n-grams.

The randomness of a draw is a function of (seed, request, position, token)
alone, not a state that every draw moves on. So a request gets the same tokens
alone or in a batch, preempted or not, and a GPU computes the same random words.
"""

from collections.abc import Sequence
from numbers import Integral
from typing import NamedTuple

import numpy as np


class Sampling(NamedTuple):
    """How a request's tokens are drawn. temperature 0: always the most probable
    one. top_k 0 and top_p 1: from all. seed: with one, the same prompt gets the
    same answer whenever it is asked; None: each request has draws of its own.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = None

    def check(self) -> None:
        """Raises ValueError for values that mean nothing."""
        seed = 0 if self.seed is None else self.seed
        if not (
            0 <= self.temperature <= float(np.finfo("float32").max)
            and isinstance(self.top_k, Integral)
            and 0 <= self.top_k < 1 << 31
            and 0 < self.top_p <= 1
            and isinstance(seed, Integral)
            and 0 <= seed < 1 << 64
        ):
            raise ValueError(
                f"{self}: temperature must be 0 or more, top_k a whole number below 2^31, "
                "top_p in (0, 1], seed a whole number of 64 bits, or None"
            )

    def key(self, request: int) -> tuple[int, int]:
        """Seed and request by which this request's tokens are drawn: the user's
        seed alone, or the request's number alone.
        """
        return (0, request) if self.seed is None else (self.seed, 0)


GREEDY = Sampling()


# --8<-- [start:philox]
def philox(counter: np.ndarray, seed: int) -> np.ndarray:
    """Philox4x32-10 (Salmon et al., 2011): 4 random words for each counter of 4
    words. uint32, [n, 4] to [n, 4].

    The same generator is in cuRAND; a thread needs no state, ten rounds of two
    products, and gets four words.
    """
    c0, c1, c2, c3 = np.asarray(counter, "uint64").T
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (
            (p1 >> np.uint64(32)) ^ c1 ^ np.uint64(k0),
            p1 & low,
            (p0 >> np.uint64(32)) ^ c3 ^ np.uint64(k1),
            p0 & low,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=1).astype("uint32")


# --8<-- [end:philox]


# --8<-- [start:gumbel]
def gumbel(vocab: int, seed: int, request: int, position: int) -> np.ndarray:
    """A random number of the Gumbel distribution for each token, float32,
    [vocab].

    Token t takes word t % 4 of the counter (t / 4, position, request, 0). The
    words are the same on every machine; the two logarithms may differ in their
    last bits.
    """
    counter = np.zeros((-(-vocab // 4), 4), "uint32")
    counter[:, 0] = np.arange(len(counter))
    counter[:, 1:3] = position, request & 0xFFFFFFFF
    words = philox(counter, seed).ravel()[:vocab].astype("float32")
    # In (0, 1), and finest near 0, where the largest results come from.
    v = words * np.float32(2.0**-32) + np.float32(2.0**-33)
    v = np.minimum(v, np.float32(1 - 2.0**-24))
    return -np.log(-np.log1p(-v))


# --8<-- [end:gumbel]


# --8<-- [start:sample]
def keep_top_k(logits: np.ndarray, k: int) -> np.ndarray:
    """The logits, [vocab], with -inf for all below the k-th largest; equals of
    the k-th stay. 0 keeps all.
    """
    if not 0 < k < len(logits):
        return logits
    least = np.partition(logits, -k)[-k]
    return np.where(logits >= least, logits, np.float32(-np.inf))


def keep_top_p(logits: np.ndarray, p: float) -> np.ndarray:
    """The logits with -inf for all but the most probable tokens, as few as have
    a probability of p together.

    Equals of the last one stay, so that the result does not depend on the order
    of tokens.
    """
    if p >= 1:
        return logits
    powers = np.exp((logits - logits.max()).astype("float64"))
    order = np.argsort(-logits, kind="stable")
    total = np.cumsum(powers[order])
    last = order[np.searchsorted(total, p * total[-1])]
    return np.where(logits >= logits[last], logits, np.float32(-np.inf))


# --8<-- [start:draw]
def sample(
    logits: np.ndarray, how: Sampling, request: int, position: int
) -> int:
    """The token for `position` of a request. logits: float32, [vocab]. request:
    as `Sampling.key` has it. Of equals the first wins.

    Adding Gumbel noise to logits and taking the largest draws from their
    softmax: no sum over the vocabulary is needed.
    """
    if how.temperature == 0:
        return int(np.argmax(logits))
    x = logits / np.float32(how.temperature)
    x = keep_top_p(keep_top_k(x, how.top_k), how.top_p)
    noise = gumbel(len(x), how.seed or 0, request, position)
    return int(np.argmax(x + noise))


# --8<-- [end:draw]
# --8<-- [end:sample]


# --8<-- [start:speculate]
class Ngrams:
    """Guesses how one sequence goes on: as it did when its last few tokens
    occurred before.

    longest, shortest: tokens that have to be equal; longer matches are tried
    first.
    """

    def __init__(self, longest: int = 3, shortest: int = 1):
        self.sizes = range(longest, shortest - 1, -1)
        self._after: dict[tuple[int, ...], int] = {}
        self._seen = 1

    def propose(self, tokens: Sequence[int], count: int) -> list[int]:
        """At most `count` tokens that may follow; [] where nothing repeats.
        tokens: those of the last call, and more.
        """
        for end in range(self._seen, len(tokens)):
            for n in self.sizes:
                if n <= end:
                    self._after[tuple(tokens[end - n : end])] = end
        self._seen = max(self._seen, len(tokens))
        for n in self.sizes:
            found = self._after.get(tuple(tokens[-n:]))
            if n <= len(tokens) and found is not None:
                return list(tokens[found : found + count])
        return []


# --8<-- [start:accept]
def accept(drafts: Sequence[int], sampled: Sequence[int]) -> list[int]:
    """What is kept of a step that guessed: sampled[i] is what the model gives
    after drafts[:i].

    Up to the first draft that is not what the model gives, all of its tokens
    count, and one token more. A draw depends on its position alone, so the
    output is the same as without drafts, at any temperature.
    """
    n = 0
    while n < len(drafts) and drafts[n] == sampled[n]:
        n += 1
    return list(sampled[: n + 1])


# --8<-- [end:accept]
# --8<-- [end:speculate]


def up_to(
    tokens: Sequence[int], stop: frozenset[int]
) -> tuple[Sequence[int], bool]:
    """The tokens up to the first of `stop`; whether there is one."""
    for i, token in enumerate(tokens):
        if token in stop:
            return tokens[: i + 1], True
    return tokens, False
