"""The layers of a model for many rows on Hopper: a launch for each product, one
for attention, and none for a norm but the first.

    layers = HopperLayers(weights, config, rows=4096, stream=stream)
    layers.run(x, h, queries, attended, act, turn, attend)
"""

from collections.abc import Callable
from typing import Any

import cudatut as ct
import norms
from checkpoint import Config
from linear_hopper import (
    EARLY,
    SOURCE,
    Norm,
    added,
    choose,
    gated,
    instance,
    turned,
)
from weights import Weights


class HopperLayers:
    """rows: most rows of a step."""

    def __init__(
        self, weights: Weights, config: Config, rows: int, stream: Any
    ):
        self.weights, self.eps, self.stream = weights, config.rms_eps, stream
        self.ahead = True  # whether weights of later launches come into L2
        self.squares = ct.empty((rows, ct.cdiv(config.dim, 16)), "float32")

    # --8<-- [start:run]
    def run(
        self,
        x: Any,
        h: Any,
        queries: Any,
        attended: Any,
        act: Any,
        turn: Callable[[int], tuple[tuple, Any]],
        attend: Callable[[int], None],
    ) -> None:
        """x: the residual stream, fp32, [rows, dim]; the others: room for what
        is between, bf16. turn: of a layer, what `turned` takes from positions
        to values, and scales. attend: launches its attention.
        """
        layers, stream = self.weights.layers, self.stream
        # Many rows share the weights, and have enough to do until they come.
        ahead = self.ahead and x.shape[0] <= EARLY

        def norm(weight: Any) -> Norm:
            return Norm(weight, h, self.squares, self.eps)

        before, squares = None, 0  # the norm in front of a layer's q, k and v
        norms.rms_norm(x, layers[0].attention_norm, h, self.eps, stream)
        for i, layer in enumerate(layers):
            where, scales = turn(i)
            turned(
                h, layer.qkv.bf16, *where, queries, before, squares,
                stream=stream, scales=scales,
            )  # fmt: skip
            attend(i)
            middle = norm(layer.ffn_norm)
            later = (layer.gate_up.bf16, layer.down.bf16) if ahead else ()
            squares = added(
                attended, layer.o.bf16, x, middle, stream, later=later
            )
            last = i + 1 == len(layers)  # of the rows that are wanted only
            before = None if last else norm(layers[i + 1].attention_norm)
            later = () if last or not ahead else (layers[i + 1].qkv.bf16,)
            gated(
                h, layer.gate_up.bf16, act, middle, squares, stream, later=later
            )
            squares = added(act, layer.down.bf16, x, before, stream)

    # --8<-- [end:run]


def instances(config: Config) -> list[tuple]:
    """The kernels that steps of any number of rows need, with a cache in bf16,
    for `ct.compile_ahead`.
    """
    c = config
    heads = c.heads * c.head_dim
    products = {
        (c.dim, heads, "Add"), (c.dim, c.ffn, "Add"),
        (2 * c.ffn, c.dim, "Gates"), (c.vocab, c.dim, "Store"),
        (heads + 2 * c.kv_heads * c.head_dim, c.dim, "Turn<__nv_bfloat16>"),
    }  # fmt: skip
    found = {
        instance(choose(n, outputs, inputs), end)
        for outputs, inputs, end in products
        for n in (EARLY, 512, 2048)
    }
    return [(SOURCE, name, None, (), "sm_90a") for name in sorted(found)]
