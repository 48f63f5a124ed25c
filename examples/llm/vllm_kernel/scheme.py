"""Attention of a step of decoding by paged_scheme.cu: the launches of vLLM's
scheme, and those in which steps of it are left out.

    cache = scheme.Cache(blocks, kv_heads, d, step=scheme.STEPS["vLLM, v1"])
    cache.store(keys, values, slots)
    run = cache.attention(q, tables, lengths, out, lse, longest)
    run()  # as often as you like

Arrays are on the GPU, those of bf16 as uint16.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct

SOURCE = "llm/vllm_kernel/paged_scheme.cu"
THREADS, WARPS = 128, 4
PART = 512  # keys of a partition, vLLM's PARTITION_SIZE


# --8<-- [start:steps]
class Step(NamedTuple):
    """What of the scheme there is: keys in chunks; threads of a key, 0 for a
    warp's 32 among the keys of a block; values in columns; keys of a part."""

    chunks: bool
    group: int
    columns: bool
    part: int


STEPS = {
    "a thread for each key": Step(False, 1, False, 0),
    "+ keys in chunks": Step(True, 1, False, 0),
    "+ thread groups": Step(True, 0, False, 0),
    "+ values in columns": Step(True, 0, True, 0),  # vLLM's v1
    "+ partitions": Step(True, 0, True, PART),  # vLLM's v2
}
V1, V2 = (STEPS[name] for name in ("+ values in columns", "+ partitions"))
# --8<-- [end:steps]


def names(d: int, block: int, step: Step) -> tuple[str, str, str]:
    """Of `store`, `paged` and `join` of paged_scheme.cu."""
    if d % 32 or not 32 <= d <= 256:
        raise ValueError(f"heads of {d}: a multiple of 32, up to 256")
    if block not in (1, 2, 4, 8, 16, 32):
        raise ValueError(f"blocks of {block}: a power of two, up to 32")
    group = step.group or 32 // block
    if d % max(group, 8):
        raise ValueError(f"heads of {d} for groups of {group} threads")
    chunks, columns = (str(x).lower() for x in (step.chunks, step.columns))
    kind = "float" if step.part else "__nv_bfloat16"
    return (
        f"store<{d},{block},{chunks},{columns}>",
        f"paged<{d},{block},{chunks},{group},{columns},{step.part},{kind}>",
        f"join<{d},{step.part or PART}>",
    )


def compile_ahead(*shapes: tuple[int, int, tuple[Step, ...]]) -> None:
    """The kernels for these d, block and steps, on all cores."""
    ct.compile_ahead(
        (SOURCE, name)
        for d, block, steps in shapes
        for step in steps
        for name in names(d, block, step)[: 3 if step.part else 2]
    )


def shared_bytes(keys: int, d: int, block: int) -> int:
    """Dynamic shared memory of `paged` for so many keys of a thread block: a
    float for each slot of their blocks, and room for the sums of the warps."""
    return 4 * max(ct.cdiv(keys, block) * block, WARPS * d)


class Cache:
    """Keys and values of `blocks` blocks of `block` tokens. of: those of
    another one of the same sizes and layout, which are used as they are."""

    def __init__(
        self,
        blocks: int,
        kv_heads: int,
        d: int,
        block: int = 16,
        step: Step = V2,
        of: tuple[Any, Any] | None = None,
    ):
        self.kv_heads, self.d, self.block, self.step = kv_heads, d, block, step
        size = blocks * block * kv_heads * d
        self.keys, self.values = of or (
            ct.empty(size, "uint16"),
            ct.empty(size, "uint16"),
        )
        store, paged, join = names(d, block, step)
        self._store, self._paged = (
            ct.Kernel(SOURCE, x) for x in (store, paged)
        )
        self._join = ct.Kernel(SOURCE, join) if step.part else None

    def store(self, keys: Any, values: Any, slots: Any) -> None:
        """keys, values: [tokens, kv_heads, d]; slots: int32, [tokens], each
        within the cache and different from the others; below 0: none."""
        shape = len(slots), self.kv_heads, self.d
        for what, array in (("keys", keys), ("values", values)):
            if tuple(array.shape) != shape:
                raise ValueError(f"{what} are {array.shape}, not {shape}")
        self._store(
            keys, values, slots, self.keys, self.values,
            grid=(len(slots), self.kv_heads), block=self.d,
        )  # fmt: skip

    # --8<-- [start:attention]
    def attention(
        self,
        q: Any,
        tables: Any,
        lengths: Any,
        out: Any,
        lse: Any,
        longest: int,
    ) -> Callable[[], None]:
        """The launch, or the two: out[i, h] is attention of q[i, h] over the
        keys of sequence i. q, out: [s, heads, d]; tables: int32, [s, width];
        lengths: int32, [s], none above longest; lse: float32, [s, heads]."""
        s, heads, d = q.shape
        width = tables.shape[1]
        if d != self.d or tuple(out.shape) != tuple(q.shape):
            raise ValueError(f"q is {q.shape}, out {out.shape}, heads {self.d}")
        if heads % self.kv_heads or tuple(lse.shape) != (s, heads):
            raise ValueError(
                f"{heads} heads share {self.kv_heads}; {lse.shape}"
            )
        if len(lengths) != s or len(tables) != s:
            raise ValueError(f"{len(tables)} tables, {len(lengths)} lengths")
        if longest < 1 or longest > width * self.block:
            raise ValueError(f"{longest} keys in {width} blocks of a table")
        part = self.step.part
        parts = ct.cdiv(longest, part) if part else 1
        room = min(longest, part or longest)
        shared = shared_bytes(room, d, self.block)
        if not part:
            to, sums = out, lse
        else:
            to = ct.empty((s, heads, parts, d), "float32")
            sums = ct.empty((s, heads, parts), "float32")

        def run() -> None:
            self._paged(
                q, self.keys, self.values, tables, width, lengths,
                self.kv_heads, room, 1 / math.sqrt(d), to, sums,
                grid=(heads, s, parts), block=THREADS, shared=shared,
            )  # fmt: skip
            if self._join:
                self._join(
                    to, sums, lengths, parts, out, lse, grid=(heads, s), block=d
                )

        return run

    # --8<-- [end:attention]

    def resources(self, longest: int) -> Any:
        """Of `paged`, as `ct.Kernel.resources`, for so many keys."""
        room = min(longest, self.step.part or longest)
        shared = shared_bytes(room, self.d, self.block)
        return self._paged.resources(THREADS, shared)


# --8<-- [start:longest]
def longest_context(d: int, block: int, step: Step, opt_in: bool) -> int:
    """Keys of the longest context for which the driver starts `paged`, found by
    trying. opt_in: the launch may ask for more than 48 KB of shared memory.
    """
    import pycuda.driver as cuda

    kernel = ct.Kernel(SOURCE, names(d, block, step)[1])
    function = cuda.module_from_buffer(kernel.cubin).get_function(kernel.symbol)
    most = cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
    nothing = ct.to_device(np.zeros(1, "int32"))  # keys of the only sequence
    out, lse = ct.empty(1 << 16, "float32"), ct.empty(1 << 10, "float32")
    pointers = [np.uint64(x.ptr) for x in (out, out, out, nothing)]

    def starts(keys: int) -> bool:
        room = min(keys, step.part or keys)
        parts = ct.cdiv(keys, step.part) if step.part else 1
        shared = shared_bytes(room, d, block)
        try:
            if opt_in:
                function.set_attribute(most, shared)
            function(
                *pointers, np.int32(1), pointers[3], np.int32(1),
                np.int32(room), np.float32(1), pointers[0],
                np.uint64(lse.ptr), grid=(1, 1, parts), block=(THREADS, 1, 1),
                shared=shared,
            )  # fmt: skip
            ct.synchronize()
        except (cuda.LogicError, cuda.LaunchError):
            return False
        return True

    low, high = 1, 1 << 19  # of blocks: the first starts, the last does not
    if starts(high * block):
        return high * block
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if starts(middle * block) else (low, middle)
    return low * block


# --8<-- [end:longest]
