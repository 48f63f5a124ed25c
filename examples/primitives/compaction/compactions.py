"""Compactions and partitions of arrays: how each kernel of this chapter is
launched.

    compact = Compaction(n, "float32")          # keeps what is above 0
    compact = Compaction(n, "int32", keep="(x) % 3 == 0")
    compact = Compaction(n, "float32", flags=True, partition=True)
    compact(x, out, count)                      # returns at once
    compact(x, out, count, flags)

A Compaction owns what its kernels need besides the arrays. Calls that may
overlap need one each.
"""

from dataclasses import replace
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.primitives.scan.scans import (
    C_TYPES,
    MOST,
    Shape,
    new_state,
    resident,
    words_of_state,
)

FOLDER = "primitives/compaction"
STEPS = f"{FOLDER}/steps.cu"

# What each kind is launched with: its file and its kernel.
KINDS = {
    "look_back": (f"{FOLDER}/compact.cu", "compact"),
    "bulk": (f"{FOLDER}/compact_bulk.cu", "compact_bulk"),
    "carried": (f"{FOLDER}/compact_carried.cu", "compact_carried"),
}
SHAPES = {
    "look_back": Shape(256, 8, resident=3, look=2),
    "bulk": Shape(256, 8, resident=2, look=2, buffers=2),
    "carried": Shape(
        256, 6, resident=2, look=9, buffers=4, more=(("AHEAD", 2),)
    ),
}
# Flags need room in the buffers; short arrays have more tiles if these are
# small.
WITH_FLAGS = replace(SHAPES["carried"], vectors=5)
SHORT = Shape(256, 4, resident=5, look=2)


class Compaction:
    """A compaction of n elements in one launch, in their order.

    kind: a key of KINDS. keep: an expression of CUDA C++ of an element `x`.
    flags: instead, an array of bytes tells what stays. partition: what does not
    stay goes to the end of out, last one first. shape: of the tiles; `more` of
    it may set PACKED, STREAMED and AHEAD. Raises ValueError.
    """

    def __init__(
        self,
        n: int,
        dtype: str = "float32",
        keep: str = "(x) > T(0)",
        flags: bool = False,
        partition: bool = False,
        kind: str = "look_back",
        shape: Shape | None = None,
    ):
        if kind not in KINDS:
            raise ValueError(f"Compaction: {kind} is none of {list(KINDS)}")
        if dtype not in C_TYPES:
            raise ValueError(f"Compaction: {dtype} is none of {list(C_TYPES)}")
        if not 0 <= n <= MOST:
            raise ValueError(f"Compaction: {n} elements; from 0 to {MOST}")
        if shape is None:
            with_flags = flags and kind == "carried"
            shape = WITH_FLAGS if with_flags else SHAPES[kind]
        size, wide = np.dtype(dtype).itemsize, n >= 1 << 32
        if shape.width < size:
            raise ValueError(f"Compaction: {dtype} in {shape.width} bytes")
        self.n, self.dtype, self.shape = n, dtype, shape
        self.kind, self.flags, self.partition = kind, flags, partition
        defines = shape.defines(dtype) | {
            "KEEP(x)": f"({keep})",
            "FLAGS": int(flags),
            "PARTITION": int(partition),
            "COUNTED_IN": "long long" if wide else "unsigned",
        }
        self.kernel = ct.Kernel(*KINDS[kind], defines=defines)
        tile = shape.tile(dtype)
        self.tiles = ct.cdiv(max(n, 1), tile)
        self.block = shape.block + 32 * (kind == "carried")
        self.shared = tile * size
        if kind == "bulk":
            self.shared = (shape.buffers + 1) * tile * size
        elif kind == "carried":
            self.shared = shape.buffers * tile * (size + flags)
        self.grid, self.more = self.tiles, ()
        if kind != "look_back":  # blocks that stay
            fits = resident(self.kernel, self.block, self.shared)
            self.grid, self.more = min(self.tiles, fits), (self.tiles,)
        self.state = new_state(
            words_of_state(shape, self.tiles, 8 if wide else 4)
        )

    def __call__(
        self,
        x: Any,
        out: Any,
        count: Any,
        flags: Any = None,
        stream: Any = None,
    ) -> None:
        """out = what stays of x, and count[0] (int64) how many that are.

        out: as long as x, of which the first count[0] elements are written, or
        with `partition` all. Raises TypeError, ValueError.
        """
        take, n, width = ct.operands("Compaction"), (self.n,), self.shape.width
        engine = self.kind in ("bulk", "carried")  # copies multiples of 16
        own = {"align": 16 if engine else width, "most": MOST}
        source = take.read("x", x, self.dtype, n, **own)
        target = take.write("out", out, self.dtype, n, most=MOST)
        number = take.write("count", count, "int64", (1,))
        mask = np.uint64(0)
        if self.flags:
            by = 16 if self.kind == "carried" else width // source.size
            begins = {"align": by, "most": MOST}
            mask = take.read("flags", flags, "uint8", n, **begins).address
        self.kernel(
            source.address, mask, target.address, number.address, self.n,
            self.state, *self.more, grid=self.grid, block=self.block,
            shared=self.shared, stream=stream,
        )  # fmt: skip


def fastest(n: int, dtype: str = "float32", **options: Any) -> Compaction:
    """The Compaction that was the fastest on the H200 for this length."""
    nbytes = n * np.dtype(dtype).itemsize
    if nbytes <= 1 << 20:
        return Compaction(n, dtype, shape=SHORT, **options)
    hopper = ct.device().compute_capability >= (9, 0)
    kind = "carried" if hopper and nbytes > 8 << 20 else "look_back"
    return Compaction(n, dtype, kind=kind, **options)


class ThreeLaunches:
    """The same as a Compaction by three launches: how many stay of each tile,
    the scan of these numbers, and each element to its place. Up to 2^31 - 1
    elements.
    """

    def __init__(
        self, n: int, dtype: str = "float32", shape: Shape | None = None
    ):
        if not 0 < n < 1 << 31:
            raise ValueError(f"ThreeLaunches: {n} elements; 1 to 2^31 - 1")
        shape = shape or Shape(vectors=4)
        self.n, self.dtype, self.shape = n, dtype, shape
        own = shape.defines(dtype)
        self.tiles = ct.cdiv(n, shape.tile(dtype))
        self.counting = ct.Kernel(STEPS, "count_tiles", defines=own)
        self.scanning = ct.Kernel(
            "primitives/scan/passes.cu",
            "scan_sums",
            defines=shape.defines("int32"),
        )
        self.placing = ct.Kernel(STEPS, "place_tiles", defines=own)
        self.counts = ct.empty(self.tiles, "int32")

    def __call__(
        self, x: Any, out: Any, count: Any, stream: Any = None
    ) -> None:
        take, n = ct.operands("ThreeLaunches"), (self.n,)
        a = take.read("x", x, self.dtype, n, align=self.shape.width).address
        b = take.write("out", out, self.dtype, n).address
        c = take.write("count", count, "int64", (1,)).address
        how = {"block": self.shape.block, "stream": stream}
        self.counting(a, self.counts, self.n, grid=self.tiles, **how)
        self.scanning(self.counts, self.tiles, grid=1, **how)
        self.placing(a, self.counts, b, c, self.n, grid=self.tiles, **how)


class Atomic:
    """What stays, in any order, by atomic additions: what order costs."""

    def __init__(self, n: int, dtype: str = "float32", block: int = 256):
        self.n, self.dtype, self.block = n, dtype, block
        own = Shape(block=block).defines(dtype) | {"VECTORS": 4}
        self.kernel = ct.Kernel(STEPS, "compact_atomic", defines=own)

    def __call__(
        self, x: Any, out: Any, count: Any, stream: Any = None
    ) -> None:
        """count, uint64, has to be 0."""
        take, n = ct.operands("Atomic"), (self.n,)
        a = take.read("x", x, self.dtype, n).address
        b = take.write("out", out, self.dtype, n).address
        c = take.write("count", count, "uint64", (1,)).address
        if self.n:
            self.kernel(
                a, b, c, self.n,
                grid=ct.cdiv(self.n, self.block), block=self.block,
                stream=stream,
            )  # fmt: skip
