"""A model of random numbers in memory, for measurements in which only shapes
count: no file, no download.

    model = RandomModel(SMOLLM2)
    backend = GpuBackend(model, block_count=4096, block_size=16)
"""

from dataclasses import replace

import numpy as np

from cudatut.book.llm.model.checkpoint import Config
from cudatut.book.llm.model.tiny import random_weights

# The sizes of SmolLM2-135M.
SMOLLM2 = Config(
    layers=30,
    dim=576,
    heads=9,
    kv_heads=3,
    head_dim=64,
    ffn=1536,
    vocab=49152,
    context=8192,
    rope_theta=1e5,
)


class RandomModel:
    """What a backend asks of a Checkpoint. Its weights are bf16 on the GPU; the
    answers mean nothing.
    """

    def __init__(self, config: Config = SMOLLM2, seed: int = 0, **sizes: int):
        self.config = replace(config, **sizes)
        self._weights = random_weights(self.config, seed)

    def type(self, name: str) -> str:
        return "BF16"

    def array(self, name: str) -> np.ndarray:
        return self._weights[name]

    def arrays(self) -> dict[str, np.ndarray]:
        return {"head": self._weights["embedding"], **self._weights}
