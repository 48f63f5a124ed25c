"""What the engine asks of a backend: the arrays of one step. NumpyBackend is
one, the GPU's is another.
"""

from math import inf
from typing import Any, NamedTuple, Protocol

import numpy as np

from cudatut.book.llm.model.checkpoint import Config


# --8<-- [start:protocol]
class Batch(NamedTuple):
    """What a backend computes in one step: n tokens of s requests, some of one
    token (decode), some of many (prefill).

    All arrays are int32 and C-contiguous; a slot times the size of its keys
    does not fit into 32 bits, though.

    tokens [n]: of all requests, one after the other; -1 - i stands for token i
        of the last `sample`
    positions [n]: of each token in its request, from 0
    slots [n]: where its key and value go: block * block_size + offset
    starts [s + 1]: request i has the tokens starts[i] to starts[i + 1] - 1, one
        at least
    lengths [s]: tokens that it has with these, its last position + 1; attention
        reads no further
    tables [s, width]: its blocks, -1 behind the last; those that `lengths` does
        not cover are not to be read
    wanted [m]: the tokens of this batch whose logits are wanted, ascending
    copies [c, 2]: blocks (from, to), copied before anything is written, in this
        order: a block that an earlier pair read may be written by a later one
    """

    tokens: np.ndarray
    positions: np.ndarray
    slots: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    tables: np.ndarray
    wanted: np.ndarray
    copies: np.ndarray


class Draws(NamedTuple):
    """How the tokens after the m wanted ones are drawn; arrays of m elements,
    fields as in `sampler.Sampling`.

    temperature, top_p: float32; top_k, request, position (of the token that is
    drawn): int32; seed: uint64. seed and request: as `Sampling.key` has them.
    """

    temperature: np.ndarray
    top_k: np.ndarray
    top_p: np.ndarray
    seed: np.ndarray
    request: np.ndarray
    position: np.ndarray


class Room(NamedTuple):
    """The most that one step of a backend may have; inf: any number. logits:
    rows of them.
    """

    tokens: float = inf
    requests: float = inf
    logits: float = inf


class Backend(Protocol):
    """A model with a paged KV cache of block_count blocks of block_size tokens.
    config: None if it has no model, and takes any token.

    `run` gives the logits of the wanted tokens, [m, vocab], in float32, as an
    array of its own kind, which stays where it is; `sample` takes them before
    the next `run`, and `fetch` makes of what it gives m tokens as int32 on the
    host, at the latest before the next but one `sample`. `run` and `sample` may
    return before anything is computed, `fetch` waits. A backend that needs fixed
    shapes, for a CUDA graph, pads the arrays itself.
    """

    config: Config | None
    block_count: int
    block_size: int
    room: Room

    def run(self, batch: Batch) -> Any: ...

    def sample(self, logits: Any, draws: Draws) -> Any: ...

    def fetch(self, drawn: Any) -> np.ndarray: ...


# --8<-- [end:protocol]
