"""The backend whose products are Hopper's: those of many rows by
linear_hopper.cu, and norms in two halves that need no launches.

    backend = HopperBackend(checkpoint, block_count=4096, block_size=16)

    old = GpuBackend(checkpoint, block_count=4096, block_size=16)
    new = HopperBackend.beside(old)

Few rows, attention and sampling are as in GpuBackend.
"""

from collections import OrderedDict
from typing import Any, Self

import activation
import norms
from gemv import ROWS
from gpu_backend import GpuBackend
from hopper_layers import HopperLayers
from linear_hopper import available, stored
from step_shape import Shape


# --8<-- [start:backend]
class HopperBackend(GpuBackend):
    """As GpuBackend. least: rows of a step from which on its products are
    those of linear_hopper.cu; more than `gemv.ROWS`.

    Raises ValueError where GpuBackend does, for the batch-invariant mode (sums
    of squares are added up tile by tile, and rows decide about the tile), and
    RuntimeError on a GPU that is not Hopper.
    """

    least = ROWS + 1

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self._prepare()

    @classmethod
    def beside(cls, backend: GpuBackend) -> Self:
        """One with the weights, the cache and the arrays of another backend:
        the two compute by turns. Its graphs are its own.
        """
        new = cls.__new__(cls)
        new.__dict__.update(backend.__dict__)
        new._graphs, new.recorded = OrderedDict(), 0
        new._prepare()
        return new

    def _prepare(self) -> None:
        if not available():
            raise RuntimeError("linear_hopper.cu needs compute capability 9.0")
        if self.batch_invariant:
            raise ValueError("no norm in two halves is batch-invariant")
        rows = len(self.x)
        self.products = HopperLayers(
            self.weights, self.config, rows, self.stream
        )

    # --8<-- [end:backend]

    # --8<-- [start:forward]
    def _forward(self, d: dict[str, Any], shape: Shape) -> None:
        n, m = len(d["tokens"]), len(d["wanted"])
        if n < max(self.least, ROWS + 1):
            super()._forward(d, shape)
            return
        c, w, stream = self.config, self.weights, self.stream
        x, h, queries, attended, act = (
            a[:n]
            for a in (self.x, self.h, self.queries, self.attended, self.act)
        )
        where = d["positions"], d["slots"], self.turns
        activation.embed(d["tokens"], w.embedding, x, stream, self.drawn)

        def turn(i: int) -> tuple[tuple, Any]:
            return (*where, *self.caches[i]), self.scales[i]

        def attend(i: int) -> None:
            self._attend(
                d, shape, self.caches[i], self.scales[i], queries, attended
            )

        self.products.run(x, h, queries, attended, act, turn, attend)
        if m:
            last, h, logits = self.last[:m], self.h[:m], self.logits[:m]
            activation.gather(d["wanted"], x, last, stream)
            norms.rms_norm(last, w.norm, h, c.rms_eps, stream)
            if m < max(self.least, ROWS + 1):
                self._multiply(h, w.head, logits)
            else:
                stored(h, w.head.bf16, logits, stream)

    # --8<-- [end:forward]
