"""The weights of a checkpoint on the GPU, in the forms that kernels read: as
they are stored for few rows, in bf16 for many.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.kernels.fused import interleave
from cudatut.book.numbers.bf16 import to_bf16

Order = Callable[[np.ndarray], np.ndarray]


# --8<-- [start:weights]
class Matrix(NamedTuple):
    """[outputs, inputs], twice. bf16: uint16. stored: the blocks of the file
    (uint8, [outputs, bytes]) where gemv.cu reads them, otherwise bf16 again.
    """

    bf16: Any
    stored: Any


class Layer(NamedTuple):
    """Matrices that multiply the same rows are one: q, k and v; gate and up,
    whose rows are in the order of `fused.interleave`. Norms are fp32, [dim].
    """

    attention_norm: Any
    qkv: Matrix
    o: Matrix
    ffn_norm: Any
    gate_up: Matrix
    down: Matrix


class Weights:
    """embedding: the blocks of Q8_0, or bf16. head: of a tied model the
    embedding again.
    """

    def __init__(self, checkpoint: Checkpoint):
        self._checkpoint = checkpoint
        c = checkpoint.config
        self.head = self._matrix("embedding" if c.tied else "head")
        table = self.head if c.tied else self._matrix("embedding")
        q8 = checkpoint.type("embedding") == "Q8_0"
        self.embedding = table.stored if q8 else table.bf16
        self.norm = self._vector("norm")
        self.layers = []
        for i in range(c.layers):
            name = f"layers.{i}."
            layer = Layer(
                self._vector(name + "attention_norm"),
                self._matrix(name + "q", name + "k", name + "v"),
                self._matrix(name + "o"),
                self._vector(name + "ffn_norm"),
                self._matrix(name + "gate", name + "up", order=interleave),
                self._matrix(name + "down"),
            )
            self.layers.append(layer)

    def _vector(self, name: str) -> Any:
        return ct.to_device(self._checkpoint.array(name))

    def _matrix(self, *names: str, order: Order | None = None) -> Matrix:
        """These matrices, one below the other; order: of their rows."""
        of, order = self._checkpoint, order or np.ascontiguousarray
        rows = to_bf16(np.concatenate([of.array(name) for name in names]))
        bf16 = ct.to_device(order(rows))
        types = {of.type(name) for name in names}
        if len(types) > 1 or not types <= {"Q8_0", "Q4_1"}:
            return Matrix(bf16, bf16)
        rows = np.concatenate([of.blocks(name) for name in names])
        return Matrix(bf16, ct.to_device(order(rows)))


# --8<-- [end:weights]
