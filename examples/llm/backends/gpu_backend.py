"""The backend that computes on the GPU: the kernels of this part, one after the
other on one stream.

    backend = GpuBackend(checkpoint, block_count=4096, block_size=16)
    engine = Engine(backend, Scheduler(blocks, context=8192))

Fast, which is the default: products go to the kernels that products.py takes
for their rows and this GPU; requests with one new token go to decode.cu, the
others to flash_parts.cu where they are few and have many keys, and prompts on
Hopper to flash_hopper_paged.cu.
Batch-invariant: every product by linear.cu and all attention by flash.cu, whose
results for a token depend on nothing else in its batch, on no chunk and on no
tile: the same request gets the same bits alone, batched, chunked or preempted.
Either way a step is a CUDA graph, its sizes rounded up.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cudatut.book.llm.kernels import activation
import cudatut as ct
from cudatut.book.llm.kernels.attention import decode
from cudatut.book.llm.kernels.attention import flash
from cudatut.book.llm.kernels.attention import flash_hopper_paged
from cudatut.book.llm.kernels.attention import flash_parts
from cudatut.book.llm.kernels import rope
from cudatut.book.llm.kernels import sampling
from cudatut.book.llm.engine.batch import Batch, Draws, Room
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.measure.graphs import Graph
from cudatut.book.llm.backends.products import Products
from cudatut.book.llm.backends.staging import Staging
from cudatut.book.llm.backends.step_shape import (
    Shape,
    arrange,
    coarse,
    coarse_rows,
)
from cudatut.book.llm.backends.step_shape import padded, power_of_two, rounded
from cudatut.book.llm.model.weights import Weights

KV = {"bf16": "uint16", "fp8": "uint8"}  # as which the cache travels
MOST_GRAPHS = 512  # kept; whose shape was not seen for longest goes first


# --8<-- [start:backend]
class GpuBackend:
    """A Llama with a paged KV cache, in memory that is taken once.

    kv: "bf16", or "fp8" for a cache of half the bytes, and other results. Its
    `scales`, float32, [layers, 2, kv_heads], are 1; whoever knows better ones
    (`fp8.fp8_scales`) sets them before the first step.

    max_tokens: of a step. max_requests: of a step. max_logits: rows of logits
    of a step; default: as many as requests. batch_invariant: see above.
    products: by which instruction many rows are multiplied, "mma.sync" or
    "wgmma", see `Products`; also in attention of prompts. Raises ValueError for a model whose heads no kernel
    takes, and for products that this GPU or this mode cannot do.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        block_count: int,
        block_size: int,
        max_tokens: int = 2048,
        max_requests: int = 256,
        max_logits: int | None = None,
        batch_invariant: bool = False,
        graphs: bool = True,
        kv: str = "bf16",
        products: str | None = None,
    ):
        import pycuda.driver as cuda

        c = self.config = checkpoint.config
        if c.head_dim not in decode.HEAD_DIMS:
            raise ValueError(
                f"heads of {c.head_dim} elements; decode.cu takes {decode.HEAD_DIMS}"
            )
        if kv not in KV:
            raise ValueError(f"a cache in {kv!r}; there is one in {list(KV)}")
        self.block_count, self.block_size = block_count, block_size
        self.batch_invariant = batch_invariant
        self.graphs = graphs
        self.overlap = ct.device().compute_capability >= (9, 0)
        # Rows of decoding and other requests are rounded up each.
        logits = coarse_rows(max_logits or max_requests)
        self.room = Room(max_tokens, max_requests, logits)
        self.weights = Weights(checkpoint)
        self.stream = cuda.Stream()
        self.tile = flash.tile_for(c.head_dim)
        self._graphs: OrderedDict[Any, Graph] = OrderedDict()
        self.recorded = 0  # graphs so far: each took tens of milliseconds

        slots = block_count * block_size
        cache = c.layers, slots, c.kv_heads, c.head_dim
        self.keys, self.values = (ct.empty(cache, KV[kv]) for _ in range(2))
        for array in (self.keys, self.values):
            # NaN: whoever reads a slot before it is written gets it.
            if kv == "fp8":
                cuda.memset_d8(array.gpudata, 0x7F, array.size)
            else:
                cuda.memset_d16(array.gpudata, 0x7FC0, array.size)
        self.caches = [(self.keys[i], self.values[i]) for i in range(c.layers)]
        self.scales = [None] * c.layers
        if kv == "fp8":
            ones = np.ones((c.layers, 2, c.kv_heads), "float32")
            self.scales = ct.to_device(ones)
        n, m = 2 * coarse_rows(max_tokens), logits
        self.x = ct.empty((n, c.dim), "float32")  # the residual stream
        self.products = Products(
            c, max(n, m), self.stream, batch_invariant, products
        )
        self.hopper = (
            self.products.by == "wgmma"
            and kv == "bf16"
            and flash_hopper_paged.available(c.head_dim, block_size)
        )
        width = c.heads * c.head_dim
        self.queries = ct.empty((n, width), "uint16")
        # Rows that are added are read too, and attention does not write them.
        self.attended = ct.to_device(np.zeros((n, width), "uint16"))
        self.act = ct.empty((n, c.ffn), "uint16")
        self.last = ct.empty((m, c.dim), "float32")
        self.logits = ct.empty((m, c.vocab), "float32")
        self.turns = ct.to_device(
            rope.rope_table(c.context, c.head_dim, c.rope_theta)
        )
        longest = min(c.context, slots)
        requests = coarse_rows(max_requests)
        self.lse = ct.empty((requests, c.heads), "float32")
        most = power_of_two(decode.parts(longest)) * decode.SPLIT
        heads = c.heads, c.kv_heads, c.head_dim
        need = decode.sizes(requests, *heads, most, decode.SHORTEST)
        self.partials = ct.empty(need.partials, "float32")
        self.tickets = ct.to_device(np.zeros(need.tickets, "uint32"))
        dealt = ct.empty(flash_parts.room(self.tile), "float32")
        self.few_or_many = partial(flash_parts.few_or_many, partials=dealt)
        self.best = ct.to_device(np.zeros(m, "uint64"))
        self.last_blocks = ct.to_device(np.zeros(m, "uint32"))  # tickets
        self.drawn = ct.to_device(np.zeros(m, "int32"))
        width = coarse(ct.cdiv(longest, block_size), 64)  # of a table
        items = coarse(flash.most_items(n, max_requests, self.tile), 2)
        requests += coarse(max_requests, 16)  # rows of both parts
        words = 4 * n + requests * (width + 3) + 2 * items + m
        words += 2 * block_count + 256
        self.step = Staging(4 * words, self.stream)
        self.how = Staging(36 * m + 256, self.stream)
        # Tokens of two steps on the host, and when they are there.
        self.tokens = [
            (cuda.pagelocked_empty(m, np.int32), cuda.Event()) for _ in range(2)
        ]
        ct.synchronize()  # what was filled above was filled on another stream

    # --8<-- [end:backend]

    # --8<-- [start:run]
    def run(self, batch: Batch) -> Any:
        """The logits of the wanted tokens, float32, on the GPU; they stand
        there until the next `run`. Raises ValueError for more than `max_...`,
        and for a request longer than the model's context.
        """
        room, m = self.room, len(batch.wanted)
        sizes = len(batch.tokens), len(batch.lengths), m
        if any(size > most for size, most in zip(sizes, room)):
            raise ValueError(
                f"{sizes} tokens, requests and rows of logits: this backend "
                f"has room for {tuple(room)}"
            )
        most, longest = self.config.context, int(batch.lengths.max())
        if longest > most:  # neither RoPE's table nor workspaces go further
            raise ValueError(f"{longest} tokens; the model knows {most}")
        if len(batch.copies):
            self._copy(batch.copies)
        how = self.tile, self.batch_invariant, self.graphs
        shape, arrays = arrange(batch, *how)
        self.step.send(arrays)
        self._launch(
            shape,
            lambda: self._forward(self.step.places(arrays), shape),
            self.overlap,
        )
        return self.logits[:m]

    def _launch(
        self, key: Any, work: Callable[[], None], overlap: bool = False
    ) -> None:
        """Launch what `work` launches: the first time itself, and then the
        graph that was made of it under this key. overlap: as Graph has it.
        """
        if graph := self._graphs.pop(key, None):
            graph.launch()
        else:
            work()  # compiles what is not compiled yet
            if self.graphs:
                graph = Graph(work, self.stream, overlap)
                self.recorded += 1
        if graph:
            self._graphs[key] = graph  # the last of them, the latest used
            while len(self._graphs) > MOST_GRAPHS:
                self._graphs.popitem(last=False)

    # --8<-- [end:run]

    # --8<-- [start:forward]
    def _forward(self, d: dict[str, Any], shape: Shape) -> None:
        """The launches of a step; d: its arrays on the GPU."""
        w, products, stream = self.weights, self.products, self.stream
        n, m = len(d["tokens"]), len(d["wanted"])
        x, queries, attended, act = (
            a[:n] for a in (self.x, self.queries, self.attended, self.act)
        )
        where = d["positions"], d["slots"], self.turns
        activation.embed(d["tokens"], w.embedding, x, stream, self.drawn)
        for layer, cache, scales in zip(w.layers, self.caches, self.scales):
            products.qkv(x, layer, where, cache, queries, scales)
            self._attend(d, shape, cache, scales, queries, attended)
            products.output(attended, layer, x)
            products.gate_up(x, layer, act)
            products.down(act, layer, x)
        if m:
            last = self.last[:m]
            activation.gather(d["wanted"], x, last, stream)
            products.logits(last, w.norm, w.head, self.logits[:m])

    def _attend(self, d, shape, cache, scales, queries, out) -> None:
        """Requests that decode have the first rows, the others those behind."""
        size, stream = self.block_size, self.stream
        out = out.reshape(len(out), self.config.heads, self.config.head_dim)
        if rows := shape.decode:
            longest = shape.parts * decode.SPLIT
            warps, split = decode.choose(rows, longest, out.shape[2])
            decode.paged(
                queries[:rows], *cache, d["tables"], d["lengths"], size, out[:rows],
                self.lse[:rows], self.partials, self.tickets,
                longest, split, stream=stream, scales=scales, warps=warps,
            )  # fmt: skip
        if shape.items:
            attend, how = self.few_or_many, {}
            if self.batch_invariant:
                attend = flash.paged
            elif self.hopper and flash_hopper_paged.worthwhile(
                shape.tokens, shape.requests
            ):
                how = {"many": flash_hopper_paged.paged}
            attend(
                queries, *cache, out, d["flash starts"], d["flash lengths"],
                d["flash tables"], size, d["work"], stream=stream,
                scales=scales, **how,
            )  # fmt: skip

    # --8<-- [end:forward]

    def _copy(self, copies: np.ndarray) -> None:
        arrays = {"pairs": copies}
        self.step.send(arrays)
        pairs = self.step.places(arrays)["pairs"]
        rope.copy_blocks(
            self.keys, self.values, pairs, self.block_size, self.stream
        )

    def sample(self, logits: Any, draws: Draws) -> np.ndarray:
        """Tokens, int32, that will be on the host: see `fetch`."""
        import pycuda.driver as cuda

        m, stream = len(logits), self.stream
        # As in `arrange`: rows that are added take the largest logit.
        rows = rounded(m) if self.graphs else m
        arrays = {
            name: padded(array, (rows,), 0, array.dtype)
            for name, array in draws._asdict().items()
        }
        self.how.send(arrays)

        def draw() -> None:
            sampling.sample(
                self.logits[:rows], *self.how.places(arrays).values(),
                self.drawn[:rows], self.best, self.last_blocks, stream=stream,
            )  # fmt: skip

        self._launch(("draw", rows), draw)
        # The tokens of the step before may not have been read yet.
        self.tokens.reverse()
        found, arrived = self.tokens[0]
        cuda.memcpy_dtoh_async(found[:m], self.drawn.gpudata, stream)
        arrived.record(stream)
        return found[:m]

    def fetch(self, drawn: np.ndarray) -> np.ndarray:
        """What `sample` gave, the last time or the one before: waits for it."""
        for found, arrived in self.tokens:
            if np.may_share_memory(drawn, found):
                arrived.synchronize()
        return drawn.copy()
