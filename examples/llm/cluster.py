"""All layers of a step of decoding in one launch, for one request with one new
token, by the kernel of cluster.cu: one cluster of blocks, sm_90 or newer.

    layers = Layers(weights.layers, caches, config)      # once
    layers.step(x, positions, slots, lengths, tables, block_size, turns)

x, float32, [1, dim], is the residual stream, as `activation.embed` leaves it; it
becomes what the launches of gpu_backend.py make of it, but for roundings: here
nothing but queries, keys and values is rounded to bf16. The cache is bf16.
Nothing is allocated by `step`: a CUDA graph may hold it. A few SMs do all the
work: meant for contexts of some hundred tokens.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

import cudatut as ct
from checkpoint import Config
from gemv import Q4_1, Q8_0, Format, format_of
from rows import address, contiguous, ints

SOURCE = "llm/cluster.cu"
HEAD_DIMS = 16, 32, 64, 128
GROUPS = range(1, 9)  # query heads that share a KV head
WARPS = 16
SLOTS = {Q4_1: 8, Q8_0: 4}  # of the ring that weights pass through
STATIC = 4096  # bytes of shared memory beside the dynamic ones, rounded up
NON_PORTABLE = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED


def instance(format: Format, head_dim: int, group: int, cluster: int) -> str:
    """The kernel's name with its template arguments."""
    return f"all_layers<{format.name}, {head_dim}, {group}, {cluster}>"


@cache
def _kernel(format: Format, head_dim: int, group: int, cluster: int) -> Any:
    kernel = ct.Kernel(SOURCE, instance(format, head_dim, group, cluster))
    if cluster > 8:  # not every GPU can: it has to be allowed
        from pycuda.driver import function_attribute

        # PyCUDA has no name for it.
        kernel._function.set_attribute(function_attribute(NON_PORTABLE), 1)
    return kernel


# --8<-- [start:room]
def shared_bytes(config: Config, cluster: int) -> int:
    """Of shared memory, besides the ring: the list of `arrange` in
    cluster_step.cuh.
    """
    c = config
    queries, width = c.heads * c.head_dim, _width(c)
    strips = ct.cdiv(max(c.dim, 2 * c.ffn, width) // 16, cluster)
    lines = WARPS * c.heads // c.kv_heads * (c.head_dim + 4)
    widest = max(c.dim, c.ffn, queries)
    parts = (
        2 * c.dim * 4,
        c.ffn * 4,
        cluster * c.heads * (c.head_dim + 4) * 4,
        max(max(WARPS, 2 * strips) * 16, lines) * 4,
        width * 2,
        (widest // 32 + 3) * 64,
        widest // 32 * 8,
        c.head_dim // 2 * 8,
        c.layers * 64,
    )
    return sum(-(-part // 16) * 16 for part in parts)


def _width(c: Config) -> int:
    """Rows of W_qkv."""
    return (c.heads + 2 * c.kv_heads) * c.head_dim


def slot_bytes(config: Config, format: Format, cluster: int, room: int) -> int:
    """Of a slot of the ring, where a block has `room` bytes of shared memory.
    Raises ValueError where a strip of 16 rows does not fit.
    """
    c = config
    longest = max(
        format.row_bytes(inputs)
        for inputs in (c.dim, c.heads * c.head_dim, c.ffn)
    )
    rest = room - STATIC - shared_bytes(c, cluster)
    slots = SLOTS[format]
    found = max(rest, 0) // slots // 128 * 128
    if found < 16 * (longest + 16):
        raise ValueError(
            f"{slots} strips of 16 rows of {longest} bytes do not fit into the {room} bytes of shared memory of a block, of which {room - rest} are taken"
        )
    return found


# --8<-- [end:room]


def refusal(config: Config, cluster: int) -> str:
    """Why no kernel takes this model; empty if one does."""
    c = config
    if c.head_dim not in HEAD_DIMS:
        return f"heads of {c.head_dim} elements; cluster.cu takes {HEAD_DIMS}"
    if c.heads % c.kv_heads or c.heads // c.kv_heads not in GROUPS:
        return f"{c.heads} query heads for {c.kv_heads} KV heads: up to 8 share one"
    if c.kv_heads > WARPS:
        return f"{c.kv_heads} KV heads; there are {WARPS} warps for them"
    queries = c.heads * c.head_dim
    if c.dim % 32 or c.ffn % 32 or queries % 32 or _width(c) % 16:
        return f"rows of {c.dim}, {queries} and {c.ffn}: they are no multiples of 32"
    if min(c.dim, 2 * c.ffn, _width(c)) < 16 * cluster:
        return f"{c.dim}, {2 * c.ffn} and {_width(c)} outputs: each of {cluster} blocks needs 16"
    return ""


# --8<-- [start:layers]
class Layers:
    """The layers of a model, as the kernel wants them.

    layers: as `weights.Layer`, their matrices stored in Q4_1 or Q8_0, all in the
    same. caches: (keys, values) of each, bf16, [slots, kv_heads, head_dim].
    cluster: blocks, 8, or 16 where the GPU can have so many in a cluster (an
    H100 can). Raises ValueError for a model that the kernel does not take.
    """

    def __init__(
        self,
        layers: Sequence[Any],
        caches: Sequence[tuple[Any, Any]],
        config: Config,
        cluster: int = 8,
    ):
        c = self.config = config
        if cluster not in (2, 4, 8, 16):
            raise ValueError(f"a cluster of {cluster} blocks; 2, 4, 8 or 16")
        if why := refusal(c, cluster):
            raise ValueError(why)
        if not len(layers) == len(caches) == c.layers:
            raise ValueError(
                f"{len(layers)} layers and {len(caches)} caches; the model has {c.layers}"
            )
        rows = [self._row(*one) for one in zip(layers, caches)]
        formats = {format for format, _ in rows}
        if len(formats) > 1 or not formats <= {Q4_1, Q8_0}:
            found = ", ".join(sorted(format.name for format in formats))
            raise ValueError(f"weights in {found}: all in Q4_1, or all in Q8_0")
        (self.format,) = formats
        gpu = ct.device()
        if gpu.compute_capability < (9, 0):
            raise ValueError(
                f"{gpu.name} has no clusters of blocks: sm_90 and newer have"
            )
        self.slot_bytes = slot_bytes(
            c, self.format, cluster, gpu.shared_per_block_optin
        )
        self.shared = SLOTS[self.format] * self.slot_bytes + shared_bytes(
            c, cluster
        )
        self._kept = list(layers), list(caches)
        self._layers = ct.to_device(
            np.array([row for _, row in rows], "uint64")
        )
        group = c.heads // c.kv_heads
        self.cluster = cluster
        self._kernel = _kernel(self.format, c.head_dim, group, cluster)

    def _row(self, layer: Any, kv: tuple[Any, Any]) -> tuple[Format, list]:
        """A struct Layer of cluster_step.cuh."""
        c = self.config
        queries = c.heads * c.head_dim
        shapes = {
            "qkv": (_width(c), c.dim), "o": (c.dim, queries),
            "gate_up": (2 * c.ffn, c.dim), "down": (c.dim, c.ffn),
        }  # fmt: skip
        found, formats = [], set()
        for name in ("attention_norm", "ffn_norm"):
            at, _ = contiguous(getattr(layer, name), name, "float32", (c.dim,))
            found.append(at)
        for name, (outputs, inputs) in shapes.items():
            stored = getattr(layer, name).stored
            formats.add(format_of(stored, inputs))
            dtype = np.dtype(stored.dtype).name
            at, _ = contiguous(stored, name, dtype, (outputs, None))
            if int(at) % 16:
                raise ValueError(
                    f"{name} begins at no multiple of 16 bytes: copy it into an array of its own"
                )
            found.append(at)
        for name, array in zip(("keys", "values"), kv):
            shape = None, c.kv_heads, c.head_dim
            at, _ = contiguous(array, name, "uint16", shape)
            if int(at) % 8:
                raise ValueError(f"{name} begin at no multiple of 8 bytes")
            found.append(at)
        if len(formats) > 1:
            names = ", ".join(sorted(format.name for format in formats))
            raise ValueError(f"weights in {names}: all in Q4_1, or all in Q8_0")
        return formats.pop(), [int(at) for at in found]

    # --8<-- [end:layers]

    def step(
        self,
        x: Any,
        positions: Any,
        slots: Any,
        lengths: Any,
        tables: Any,
        block_size: int,
        turns: Any,
        stream: Any = None,
    ) -> None:
        """All layers for one token; x becomes the residual stream behind the
        last.

        x: float32, [1, dim]. positions, slots, lengths: int32, [1]; tables:
        int32, [1, width]; as in `batch.Batch`. The keys are those of the table
        and, the last one, the token's own, which also goes to its slot unless
        that is negative. turns: `rope.rope_table`'s, float32, [positions,
        head_dim / 2, 2]; positions are not checked. Raises ValueError.
        """
        c = self.config
        at, _ = contiguous(x, "x", "float32", (1, c.dim))
        table, _ = contiguous(tables, "tables", "int32", (1, None))
        by, _ = contiguous(
            turns, "turns", "float32", (None, c.head_dim // 2, 2)
        )
        lists = [
            ints(array, name, 1)
            for array, name in (
                (positions, "positions"), (slots, "slots"), (lengths, "lengths")
            )
        ]  # fmt: skip
        if block_size < 1:
            raise ValueError(f"blocks of {block_size} tokens")
        if int(by) % 8:
            raise ValueError("turns begin at no multiple of 8 bytes")
        self._kernel(
            np.uint64(address(self._layers)), c.layers, at, *lists, table,
            block_size, by, c.dim, c.ffn, c.kv_heads, c.rms_eps,
            self.slot_bytes, grid=self.cluster, block=32 * WARPS,
            shared=self.shared, stream=stream,
        )  # fmt: skip
