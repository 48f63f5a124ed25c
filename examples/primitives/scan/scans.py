"""Scans of arrays: how each kernel of this chapter is launched.

    scan = Scan("look_back", n, "float32")          # inclusive
    scan = Scan("in_order", n, "int64", exclusive=True)
    scan(x, out)                                    # returns at once

A Scan has compiled its kernels and owns what they need besides the arrays, so
that a call is nothing but its launches. Calls that may overlap need a Scan
each.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import cudatut as ct

FOLDER = "primitives/scan"
C_TYPES = {
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "int64": "long long",
}
MOST = (1 << 40) - 1  # elements; tiles are counted in an int
HEADER, LINE = 16, 16  # words of 8 bytes, as in look_back.cuh


@dataclass(frozen=True)
class Shape:
    """What the kernels are compiled for, besides the type.

    vectors: loads that a thread has in flight. look: words that a thread reads
    at once. copies: of a group's prefix. resident: blocks for each SM at least.
    """

    block: int = 256
    vectors: int = 8
    width: int = 16
    resident: int = 1
    look: int = 1
    copies: int = 8
    buffers: int = 3
    pause_ns: int = 0
    more: tuple[tuple[str, Any], ...] = ()

    def defines(self, dtype: str, exclusive: bool = False) -> dict[str, Any]:
        return {
            "ELEMENT": C_TYPES[dtype],
            "EXCLUSIVE": int(exclusive),
            "BLOCK": self.block,
            "VECTORS": self.vectors,
            "WIDTH": self.width,
            "RESIDENT": self.resident,
            "LOOK": self.look,
            "COPIES": self.copies,
            "BUFFERS": self.buffers,
            "PAUSE_NS": self.pause_ns,
        } | dict(self.more)

    def tile(self, dtype: str) -> int:
        """Elements of a tile."""
        per_vector = self.width // np.dtype(dtype).itemsize
        return self.block * self.vectors * per_vector

    @property
    def group(self) -> int:
        """Tiles of a group of `in_order`."""
        return self.block * self.look


def words_of_state(shape: Shape, tiles: int, bytes_of_sum: int) -> int:
    """Words of 8 bytes that a launch of one pass needs, by any of its kernels."""
    own = tiles * (2 if bytes_of_sum > 4 else 1)
    groups = ct.cdiv(tiles, shape.group)
    return HEADER + ct.cdiv(own, LINE) * LINE + groups * shape.copies * LINE


def new_state(words: int) -> Any:
    return ct.to_device(np.zeros(words, "uint64"))


# What each kind is launched with: its file and its kernel.
KERNELS = {
    "look_back": ("one_pass.cu", "scan_look_back"),
    "in_order": ("one_pass.cu", "scan_in_order"),
    "at_once": ("one_pass.cu", "scan_at_once"),
    "bulk": ("bulk.cu", "scan_bulk"),
    "ahead": ("ahead.cu", "scan_ahead"),
    "cluster": ("cluster.cu", "scan_cluster"),
    "segments": ("segments.cu", "scan_segments"),
}
KINDS = ("tree", "warps", "passes", *KERNELS)
STATIC = (("IN_ORDER", 1), ("TICKETS", 0))
SHAPES = {
    "tree": Shape(),
    "warps": Shape(),
    "passes": Shape(),
    "look_back": Shape(resident=4),
    "in_order": Shape(resident=4),
    "at_once": Shape(vectors=4),
    "bulk": Shape(resident=3, buffers=2, copies=32, more=STATIC),
    "ahead": Shape(buffers=7, look=5, more=(("LOOKERS", 3),)),
    "cluster": Shape(vectors=4),
    "segments": Shape(vectors=4),
}
WIDE = {  # for sums of 8 bytes
    "ahead": replace(
        SHAPES["ahead"], more=(("LOOKERS", 5), ("BULK_STORES", 1))
    ),
}


class Scan:
    """A scan of n elements.

    kind: one of KINDS. dtype: a key of C_TYPES. exclusive: an element is no
    part of its own sum. Raises ValueError for what the kind cannot do, and what
    ct.Kernel raises.
    """

    def __init__(
        self,
        kind: str,
        n: int,
        dtype: str = "float32",
        exclusive: bool = False,
        shape: Shape | None = None,
    ):
        if kind not in KINDS:
            raise ValueError(f"Scan: {kind} is none of {', '.join(KINDS)}")
        if dtype not in C_TYPES:
            raise ValueError(f"Scan: {dtype} is none of {', '.join(C_TYPES)}")
        if not 0 <= n <= MOST:
            raise ValueError(f"Scan: {n} elements; from 0 to {MOST}")
        wide = np.dtype(dtype).itemsize > 4
        if shape is None:
            shape = SHAPES[kind]
            if wide:  # sums of 8 bytes take more registers
                own = min(shape.resident, 3)
                shape = WIDE.get(kind) or replace(shape, resident=own)
        self.kind, self.n, self.dtype, self.shape = kind, n, dtype, shape
        self._defines = shape.defines(dtype, exclusive)
        self._take = f"{kind} scan"
        if kind in ("tree", "warps"):
            self._launch = self._tiles_alone()
        elif kind == "passes":
            self._launch = self._three_passes()
        else:
            self._launch = self._one_launch(8 if wide else 4)

    def __call__(
        self, x: Any, out: Any, heads: Any = None, stream: Any = None
    ) -> None:
        """out = the sums of x; for segments, begun anew where `heads`, uint8, is
        not 0. Raises TypeError, ValueError for arrays that do not fit.
        """
        take, n = ct.operands(self._take), (self.n,)
        align = self.shape.width if self.kind not in ("tree", "warps") else 1
        own = {"align": align, "most": MOST}
        arrays = [take.read("x", x, self.dtype, n, **own)]
        if self.kind == "segments":
            size = np.dtype(self.dtype).itemsize
            begins = {"align": align // size, "most": MOST}
            arrays.append(take.read("heads", heads, "uint8", n, **begins))
        arrays.append(take.write("out", out, self.dtype, n, **own))
        if self.n:
            self._launch([one.address for one in arrays], stream)

    def _kernel(self, file: str, name: str) -> ct.Kernel:
        return ct.Kernel(f"{FOLDER}/{file}", name, defines=self._defines)

    def _tiles_alone(self) -> Callable[[list, Any], None]:
        """Scan of each tile, scan of their sums, addition of these."""
        block = self.shape.block
        tile = 2 * block if self.kind == "tree" else block
        tiles = ct.cdiv(max(self.n, 1), tile)
        first = self._kernel("tree.cu", f"scan_{self.kind}")
        between = self._kernel("passes.cu", "scan_sums")
        last = self._kernel("tree.cu", "add_sums")
        sums = ct.empty(tiles, self.dtype)

        def launch(arrays: list, stream: Any) -> None:
            x, out = arrays
            first(x, out, sums, self.n, grid=tiles, block=block, stream=stream)
            between(sums, tiles, grid=1, block=block, stream=stream)
            last(
                out, sums, tile, self.n, grid=tiles, block=block, stream=stream
            )

        return launch

    def _three_passes(self) -> Callable[[list, Any], None]:
        block = self.shape.block
        tiles = ct.cdiv(max(self.n, 1), self.shape.tile(self.dtype))
        first = self._kernel("passes.cu", "sum_tiles")
        between = self._kernel("passes.cu", "scan_sums")
        last = self._kernel("passes.cu", "scan_tiles")
        sums = ct.empty(tiles, self.dtype)

        def launch(arrays: list, stream: Any) -> None:
            x, out = arrays
            first(x, sums, self.n, grid=tiles, block=block, stream=stream)
            between(sums, tiles, grid=1, block=block, stream=stream)
            last(x, sums, out, self.n, grid=tiles, block=block, stream=stream)

        return launch

    def _one_launch(self, bytes_of_sum: int) -> Callable[[list, Any], None]:
        shape, block, n = self.shape, self.shape.block, self.n
        tile = shape.tile(self.dtype)
        tiles, shared = ct.cdiv(max(n, 1), tile), 0
        kernel = self._kernel(*KERNELS[self.kind])
        grid, more = tiles, ()
        if self.kind == "cluster":
            grid = dict(shape.more).get("BLOCKS", 8)
            if tiles > grid:
                raise ValueError(
                    f"cluster scan: {n} elements; at most {grid * tile}"
                )
        elif self.kind in ("bulk", "ahead"):
            shared = shape.buffers * tile * np.dtype(self.dtype).itemsize
            if self.kind == "ahead":  # one more row of threads, for other tasks
                block = block, dict(shape.more).get("TEAMS", 1) + 1
            grid, more = min(tiles, resident(kernel, block, shared)), (tiles,)
        elif self.kind == "at_once":
            most = min(shape.group, resident(kernel, block))
            if tiles > most:
                raise ValueError(
                    f"at_once scan: {n} elements; at most {most * tile}"
                )
        self.tiles, self.grid, self.kernel = tiles, grid, kernel
        if self.kind != "cluster":
            words = words_of_state(shape, tiles, bytes_of_sum)
            self.state = new_state(words)
            more = (self.state, *more)

        def launch(arrays: list, stream: Any) -> None:
            kernel(
                *arrays, n, *more,
                grid=grid, block=block, shared=shared, stream=stream,
            )  # fmt: skip

        return launch


def fastest(n: int, dtype: str = "float32", exclusive: bool = False) -> Scan:
    """The Scan for this length, as measured on the H200.

    On it: a tile of its own for each SM; then the copy engine; from 8 MB on,
    sums that run ahead.
    """
    hopper = ct.device().compute_capability >= (9, 0)
    nbytes, few = n * np.dtype(dtype).itemsize, SHAPES["at_once"]
    tiles = ct.device().sm_count if hopper else few.group
    if n <= few.tile(dtype) * min(tiles, few.group):
        try:
            return Scan("at_once", n, dtype, exclusive)
        except ValueError:  # this GPU does not hold so many tiles
            pass
    kind = "in_order"
    if hopper:
        kind = "bulk" if nbytes <= 8 << 20 else "ahead"
    return Scan(kind, n, dtype, exclusive)


def resident(kernel: ct.Kernel, block: Any, shared: int = 0) -> int:
    """Blocks that this GPU holds at the same time."""
    found = kernel.resources(block, shared).blocks_per_sm
    return max(1, found) * ct.device().sm_count
