"""The products of a step, with the norms in front of them: each by the kernel
that is the fastest one for its rows on this GPU.

    products = Products(config, max_rows, stream)
    products.qkv(x, layer, where, cache, queries, scales)
    products.output(attended, layer, x)
    products.gate_up(x, layer, act)
    products.down(act, layer, x)
    products.logits(last, norm, head, logits)

Up to `gemv.ROWS` rows: gemv.cu and fused.cu, straight from the stored blocks.
More rows: linear.cu, linear_split.cu and linear_qkv.cu, by mma.sync. On a GPU
of compute capability 9.0 the table `linear_hopper.FASTER` names the products
and rows for which linear_hopper.cu, by wgmma, is faster: `by` says which.
"""

from typing import Any

import cudatut as ct
from cudatut.book.llm.kernels import fused
from cudatut.book.llm.kernels import linear_hopper
from cudatut.book.llm.kernels import norms
from cudatut.book.llm.model.checkpoint import Config
from cudatut.book.llm.kernels.gemv import ROWS, gemv
from cudatut.book.llm.kernels.linear import linear
from cudatut.book.llm.kernels.linear_qkv import linear_qkv
from cudatut.book.llm.model.weights import Layer, Matrix

BY = "mma.sync", "wgmma"  # the faster one is the last


# --8<-- [start:products]
class Products:
    """by: "wgmma", which takes compute capability 9.0: linear_hopper.cu where its
    table has a tile; "mma.sync": never. Default: "wgmma" on a GPU that can.

    batch_invariant: every product by linear.cu and linear_qkv.cu without split
    sums, so "mma.sync": a norm in two halves adds up squares tile by tile, and
    the number of rows decides about the tile. Raises ValueError for another
    `by`, also on a GPU that cannot.
    """

    def __init__(
        self,
        config: Config,
        max_rows: int,
        stream: Any = None,
        batch_invariant: bool = False,
        by: str | None = None,
    ):
        ways = list(BY)
        if batch_invariant or not linear_hopper.available():
            ways.remove("wgmma")
        self.by = by or ways[-1]
        if self.by not in ways:
            raise ValueError(
                f"products by {by!r}: here {ways} can be asked for; wgmma takes "
                "compute capability 9.0 and is not batch-invariant"
            )
        self.eps, self.stream = config.rms_eps, stream
        self.fast = not batch_invariant  # sums may be split
        self.few = ROWS if self.fast else 0  # rows for gemv.cu and fused.cu
        self.h = ct.empty((max_rows, config.dim), "uint16")  # normalized rows
        if self.by == "wgmma":
            parts = ct.cdiv(config.dim, 16)  # of a row, in the narrowest tiles
            self.squares = ct.empty((max_rows, parts), "float32")

    def tile(self, product: str, n: int) -> linear_hopper.Tile | None:
        """Of linear_hopper.cu, or None for the other kernels: this and `few`
        decide who multiplies.
        """
        return linear_hopper.choose(product, n) if self.by == "wgmma" else None

    # --8<-- [end:products]

    # --8<-- [start:launches]
    def qkv(self, x, layer: Layer, where, cache, queries, scales) -> None:
        """where: positions, slots, and RoPE's table."""
        norm, more = (x, layer.attention_norm), (*where, *cache, queries)
        if len(x) <= self.few:
            fused.norm_qkv(
                *norm, layer.qkv.stored, *more, self.eps, self.stream,
                scales=scales,
            )  # fmt: skip
        else:
            h = self._normalized(*norm)
            linear_qkv(h, layer.qkv.bf16, *more, self.stream, scales=scales)

    def output(self, attended, layer: Layer, x) -> None:
        """x += attended @ o.T, and half of the norm behind it, if `_between`
        gives one.
        """
        self._add("o", attended, layer.o, x, self._between(layer, len(x)))

    def gate_up(self, x, layer: Layer, act) -> None:
        """act = silu(gate) * up"""
        n, gates, norm = len(x), layer.gate_up, (x, layer.ffn_norm)
        if n <= self.few:
            fused.norm_gate_up(*norm, gates.stored, act, self.eps, self.stream)
            return
        half = self._between(layer, n)
        h = half.h if half else self._normalized(*norm)
        if tile := self.tile("gate_up", n):
            squares = self.tile("o", n).squares if half else 0
            linear_hopper.gated(
                h, gates.bf16, act, tile, half, squares, self.stream
            )
        else:
            linear(
                h, gates.bf16, act, stream=self.stream, swiglu=True,
                fast=self.fast,
            )  # fmt: skip

    def down(self, act, layer: Layer, x) -> None:
        """x += act @ down.T"""
        self._add("down", act, layer.down, x)

    def logits(self, x, norm, head: Matrix, out) -> None:
        """out = rms_norm(x) @ head.T"""
        h = self._normalized(x, norm)
        if tile := self.tile("logits", len(x)):
            linear_hopper.stored(h, head.bf16, out, tile, self.stream)
        else:
            self._multiply(h, head, out)

    def _normalized(self, x, weight):
        h = self.h[: len(x)]
        norms.rms_norm(x, weight, h, self.eps, self.stream)
        return h

    def _between(self, layer: Layer, n: int) -> linear_hopper.Norm | None:
        """The norm between output and gates, if both are linear_hopper.cu's:
        then it needs no launch.
        """
        if not self.tile("o", n) or not self.tile("gate_up", n):
            return None
        h = self.h[:n]
        return linear_hopper.Norm(layer.ffn_norm, h, self.squares, self.eps)

    def _add(self, product: str, x, matrix: Matrix, y, norm=None) -> None:
        """y += x @ matrix.T"""
        if tile := self.tile(product, len(x)):
            linear_hopper.added(x, matrix.bf16, y, tile, norm, self.stream)
        else:
            self._multiply(x, matrix, y, add=True)

    def _multiply(self, x, matrix: Matrix, out, add: bool = False) -> None:
        """out (+)= x @ matrix.T"""
        if len(x) <= self.few:
            gemv(x, matrix.stored, out, add, self.stream)
        else:
            linear(x, matrix.bf16, out, add, self.stream, fast=self.fast)

    # --8<-- [end:launches]
