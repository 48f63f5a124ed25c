"""The backend some of whose products are Hopper's: for each product and number
of rows the faster one of linear_hopper.cu and the kernels of GpuBackend.

    backend = HopperBackend(checkpoint, block_count=4096, block_size=16)

    old = GpuBackend(checkpoint, block_count=4096, block_size=16)
    new = HopperBackend.beside(old)

Few rows, queries, keys and values, attention and sampling are as in GpuBackend.
"""

from collections import OrderedDict
from typing import Any, Self

import activation
import cudatut as ct
import norms
from gpu_backend import GpuBackend
from linear import linear
from linear_hopper import (
    FASTER,
    FEW,
    SOURCE,
    Norm,
    added,
    available,
    choose,
    gated,
    instance,
    stored,
)
from linear_qkv import linear_qkv
from step_shape import Shape
from weights import Matrix


# --8<-- [start:backend]
class HopperBackend(GpuBackend):
    """As GpuBackend. least: rows of a step from which on `choose` is asked;
    more than `gemv.ROWS`.

    Raises ValueError where GpuBackend does, for the batch-invariant mode (sums
    of squares are added up tile by tile, and rows decide about the tile), and
    RuntimeError on a GPU that is not Hopper.
    """

    least = FEW.start

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
        parts = ct.cdiv(self.config.dim, 16)  # of a row, in the narrowest tiles
        self.squares = ct.empty((len(self.x), parts), "float32")

    # --8<-- [end:backend]

    # --8<-- [start:forward]
    def _forward(self, d: dict[str, Any], shape: Shape) -> None:
        n, m = len(d["tokens"]), len(d["wanted"])
        if n < self.least:
            super()._forward(d, shape)
            return
        c, w, stream = self.config, self.weights, self.stream
        x, h, queries, attended, act = (
            a[:n]
            for a in (self.x, self.h, self.queries, self.attended, self.act)
        )
        where = d["positions"], d["slots"], self.turns
        both = choose("o", n), choose("gate_up", n)
        activation.embed(d["tokens"], w.embedding, x, stream, self.drawn)
        for i, (layer, cache) in enumerate(zip(w.layers, self.caches)):
            norms.rms_norm(x, layer.attention_norm, h, c.rms_eps, stream)
            linear_qkv(
                h, layer.qkv.bf16, *where, *cache, queries, stream,
                scales=self.scales[i],
            )  # fmt: skip
            self._attend(d, shape, cache, self.scales[i], queries, attended)
            norm = None
            if all(both):  # then the norm between them needs no launch
                norm = Norm(layer.ffn_norm, h, self.squares, c.rms_eps)
            squares = self._add("o", attended, layer.o, x, norm)
            if not norm:
                norms.rms_norm(x, layer.ffn_norm, h, c.rms_eps, stream)
            gates, tile = layer.gate_up.bf16, both[1]
            if tile:
                gated(h, gates, act, tile, norm, squares, stream)
            else:
                linear(h, gates, act, stream=stream, swiglu=True, fast=True)
            self._add("down", act, layer.down, x)
        if m:
            last, h, logits = self.last[:m], self.h[:m], self.logits[:m]
            activation.gather(d["wanted"], x, last, stream)
            norms.rms_norm(last, w.norm, h, c.rms_eps, stream)
            if tile := choose("logits", m):
                stored(h, w.head.bf16, logits, tile, stream)
            else:
                self._multiply(h, w.head, logits)

    def _add(
        self,
        product: str,
        x: Any,
        matrix: Matrix,
        y: Any,
        norm: Norm | None = None,
    ) -> int:
        """y += x @ matrix.T; 0, or what `added` gives."""
        if tile := choose(product, len(x)):
            return added(x, matrix.bf16, y, tile, norm, self.stream)
        self._multiply(x, matrix, y, add=True)
        return 0

    # --8<-- [end:forward]


def instances() -> list[tuple]:
    """The kernels of linear_hopper.cu, for `ct.compile_ahead`."""
    ends = {"o": "Add", "down": "Add", "gate_up": "Gates", "logits": "Store"}
    found = {
        instance(tile, ends[product])
        for product, tiles in FASTER.items()
        for tile in tiles.values()
    }
    return [(SOURCE, name, None, (), "sm_90a") for name in sorted(found)]
