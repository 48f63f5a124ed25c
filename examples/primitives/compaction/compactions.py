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

FILE = "primitives/compaction/compact.cu"
BULK = "primitives/compaction/compact_bulk.cu"
STEPS = "primitives/compaction/steps.cu"


class Compaction:
    """A compaction of n elements in one launch, in their order.

    keep: an expression of CUDA C++ of an element `x`. flags: instead, an array
    of bytes tells what stays. partition: what does not stay goes to the end of
    out, last one first. at_once: for few tiles, without tickets. bulk: by
    blocks that stay, with the copy engine. shape: of the tiles; `more` of it
    may set STAGED and IN_ORDER. Raises ValueError.
    """

    def __init__(
        self,
        n: int,
        dtype: str = "float32",
        keep: str = "(x) > T(0)",
        flags: bool = False,
        partition: bool = False,
        at_once: bool = False,
        bulk: bool = False,
        shape: Shape | None = None,
    ):
        if dtype not in C_TYPES:
            raise ValueError(f"Compaction: {dtype} is none of {list(C_TYPES)}")
        if not 0 <= n <= MOST:
            raise ValueError(f"Compaction: {n} elements; from 0 to {MOST}")
        shape = shape or Shape(vectors=4)
        size, wide = np.dtype(dtype).itemsize, n >= 1 << 32
        self.n, self.dtype, self.shape = n, dtype, shape
        self.flags, self.partition = flags, partition
        defines = shape.defines(dtype) | {
            "KEEP(x)": f"({keep})",
            "FLAGS": int(flags),
            "PARTITION": int(partition),
            "AT_ONCE": int(at_once),
            "COUNTED_IN": "long long" if wide else "unsigned",
        }
        file, name = (BULK, "compact_bulk") if bulk else (FILE, "compact")
        self.kernel = ct.Kernel(file, name, defines=defines)
        tile = shape.tile(dtype)
        self.tiles = ct.cdiv(max(n, 1), tile)
        self.shared = tile * size if defines.get("STAGED", 1) else 0
        self.grid, self.more = self.tiles, ()
        if bulk:
            self.shared = (shape.buffers + 1) * tile * size
            fits = resident(self.kernel, shape.block, self.shared)
            self.grid, self.more = min(self.tiles, fits), (self.tiles,)
        if at_once:
            fits = resident(self.kernel, shape.block, self.shared)
            if self.tiles > (most := min(shape.group, fits)):
                raise ValueError(
                    f"Compaction at once: {n} elements; at most {most * tile}"
                )
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
        own = {"align": width, "most": MOST}
        source = take.read("x", x, self.dtype, n, **own)
        target = take.write("out", out, self.dtype, n, most=MOST)
        number = take.write("count", count, "int64", (1,))
        mask = np.uint64(0)
        if self.flags:
            begins = {"align": width // source.size, "most": MOST}
            mask = take.read("flags", flags, "uint8", n, **begins).address
        self.kernel(
            source.address, mask, target.address, number.address, self.n,
            self.state, *self.more, grid=self.grid, block=self.shape.block,
            shared=self.shared, stream=stream,
        )  # fmt: skip


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
        null, block = np.uint64(0), self.shape.block
        how = {"block": block, "stream": stream}
        self.counting(a, null, self.counts, self.n, grid=self.tiles, **how)
        self.scanning(self.counts, self.tiles, grid=1, **how)
        self.placing(a, null, self.counts, b, c, self.n, grid=self.tiles, **how)


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
