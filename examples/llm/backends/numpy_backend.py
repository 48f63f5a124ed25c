"""The backend that needs no GPU: the reference model with a paged KV cache."""

import numpy as np

from cudatut.book.llm.engine.batch import Batch, Draws, Room
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.model.reference import attention, forward
from cudatut.book.llm.engine.sampler import Sampling, sample


# --8<-- [start:numpy]
class NumpyBackend:
    """The reference with a paged KV cache: no GPU needed.

    A slot holds NaN until it is first written, so that whoever reads it before
    gets NaN. one_by_one: each token is computed alone, so that its logits have
    the same bits whatever else is in its batch.
    """

    room = Room()

    def __init__(
        self,
        checkpoint: Checkpoint,
        block_count: int,
        block_size: int,
        one_by_one: bool = False,
    ):
        self.config, self.weights = checkpoint.config, checkpoint.arrays()
        self.block_count, self.block_size = block_count, block_size
        self.one_by_one, c = one_by_one, self.config
        self.drawn = np.zeros(1, "int32")
        shape = (c.layers, block_count * block_size, c.kv_heads, c.head_dim)
        self.keys = np.full(shape, np.nan, "float32")
        self.values = np.full(shape, np.nan, "float32")

    def run(self, batch: Batch) -> np.ndarray:
        size, tokens = self.block_size, batch.tokens
        if (tokens < 0).any():
            drawn = self.drawn[np.maximum(-1 - tokens, 0)]
            batch = batch._replace(tokens=np.where(tokens < 0, drawn, tokens))
        for cache in (self.keys, self.values):
            for old, new in batch.copies:
                cache[:, new * size : (new + 1) * size] = cache[
                    :, old * size : (old + 1) * size
                ]
        if not self.one_by_one:
            return self._run(batch)
        owner = np.repeat(np.arange(len(batch.lengths)), np.diff(batch.starts))
        wanted, alone = set(batch.wanted.tolist()), []
        for t, i in enumerate(owner):
            one = slice(t, t + 1)
            single = batch._replace(
                tokens=batch.tokens[one],
                positions=batch.positions[one],
                slots=batch.slots[one],
                starts=np.array([0, 1]),
                lengths=batch.positions[one] + 1,
                tables=batch.tables[i : i + 1],
                wanted=np.zeros(int(t in wanted), "int32"),
            )
            alone.append(self._run(single))
        return np.concatenate(alone)

    def _run(self, batch: Batch) -> np.ndarray:
        size = self.block_size

        def attend(layer, q, k, v):
            self.keys[layer, batch.slots] = k
            self.values[layer, batch.slots] = v
            out = np.empty((len(q), q.shape[1] * q.shape[2]), "float32")
            for i, length in enumerate(batch.lengths):
                own = slice(batch.starts[i], batch.starts[i + 1])
                t = np.arange(length)
                slots = batch.tables[i, t // size] * size + t % size
                out[own] = attention(
                    q[own],
                    self.keys[layer, slots],
                    self.values[layer, slots],
                    batch.positions[own],
                )
            return out

        return forward(
            self.config,
            self.weights,
            batch.tokens,
            batch.positions,
            attend,
            batch.wanted,
        )

    def sample(self, logits: np.ndarray, draws: Draws) -> np.ndarray:
        """By the functions of sampler.py."""
        rows = zip(logits, *draws)
        found = [
            sample(
                row,
                Sampling(float(t), int(k), float(p), int(seed)),
                int(request),
                int(position),
            )
            for row, t, k, p, seed, request, position in rows
        ]
        self.drawn = np.array(found, "int32")
        return self.drawn

    def fetch(self, drawn: np.ndarray) -> np.ndarray:
        return drawn


# --8<-- [end:numpy]
