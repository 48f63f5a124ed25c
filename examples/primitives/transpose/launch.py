"""Launchers of the kernels of this chapter, all of them out = x^T.

    run = transpose(x, out)   # a matrix of any size, rows of any pitch
    run()                     # launches; returns at once

`transpose` chooses among the others, which are the rungs of the chapter.

Elements have 1, 2, 4 or 8 bytes. x and out are matrices on the GPU whose rows
are contiguous and lie evenly apart, such as views `a[:, :n]`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import cudatut as ct

FOLDER = "primitives/transpose"
C_TYPES = {1: "unsigned char", 2: "unsigned short", 4: "float", 8: "double"}
MOST_TILES = (1 << 31) - 1  # blocks of a grid
MOST = MOST_TILES - 255  # rows and columns, which kernels round up to tiles
ALL = MOST_TILES  # rows of tiles in a band: all there are
GROUP = ALL
# Tile and threads of `vectors`, by the bytes of an element.
TILES = {
    1: ((128, 256), 128),
    2: ((128, 128), 256),
    4: ((64, 64), 256),
    8: ((32, 32), 256),
}
NARROW = 32  # fewer rows or columns are a tile of their own shape


@cache
def _kernel(source: str, name: str) -> ct.Kernel:
    return ct.Kernel(source, name)


class Turn(NamedTuple):
    """Two matrices, checked: x of rows x columns, and out."""

    x: Any
    out: Any
    rows: int
    columns: int
    size: int  # bytes of an element

    @property
    def ctype(self) -> str:
        return C_TYPES[self.size]

    @property
    def operands(self) -> tuple:
        return self.x, self.out

    @property
    def arguments(self) -> tuple:
        x, out = self.x, self.out
        return (
            x.address,
            out.address,
            self.rows,
            self.columns,
            x.stride,
            out.stride,
        )

    @property
    def wide(self) -> bool:
        """Whether all rows of both begin at multiples of 16 bytes."""
        return self.x.aligned(16) and self.out.aligned(16)


def checked(x: Any, out: Any) -> Turn:
    """Raises TypeError for what is no matrix of such elements on this GPU,
    ValueError for other shapes, strides of elements, or shared memory."""
    take = ct.operands("transpose")
    a = take.read("x", x, None, (None, None), rows=1, most=MOST)
    if a.size not in C_TYPES:
        raise TypeError(
            f"transpose: elements of {a.size} bytes ({a.dtype}): they may have 1, 2, 4 or 8"
        )
    rows, columns = a.shape
    b = take.write("out", out, a.dtype, (columns, rows), rows=1, most=MOST)
    return Turn(a, b, rows, columns, a.size)


def _blocks(turn: Turn, height: int, width: int) -> int:
    tiles = ct.cdiv(turn.rows, height) * ct.cdiv(turn.columns, width)
    if tiles > MOST_TILES:
        raise ValueError(
            f"transpose: {tiles} tiles of {height} x {width}: a grid has at most {MOST_TILES} blocks"
        )
    return tiles


def _bands(group: int) -> int:
    if group < 1:
        raise ValueError(f"transpose: a band has {group} rows of tiles")
    return group


def _group(turn: Turn, height: int, group: int) -> int:
    return min(_bands(group), max(1, ct.cdiv(turn.rows, height)))


def _run(
    kernel: ct.Kernel, operands: tuple, arguments: tuple, **launch: Any
) -> Callable:
    if launch["grid"] == 0:
        return lambda stream=None: None  # no elements

    def run(stream=None):
        kernel(*arguments, **launch, stream=stream)

    run.operands = operands  # an address keeps no array alive
    return run


def naive(x: Any, out: Any, columns: bool = False) -> Callable:
    """One element per thread. columns: a warp reads a column."""
    turn = checked(x, out)
    name = "transpose_naive_columns" if columns else "transpose_naive"
    kernel = _kernel(f"{FOLDER}/naive.cu", f"{name}<{turn.ctype}>")
    tile = (32, 8) if columns else (8, 32)
    return _run(
        kernel,
        turn.operands,
        turn.arguments,
        grid=_blocks(turn, *tile),
        block=(32, 8),
    )


def tiled(x: Any, out: Any, kind: str = "tiled") -> Callable:
    """Tiles of 32 x 32. kind: 'tiled', 'padded' or 'swizzled'."""
    turn = checked(x, out)
    kernel = _kernel(f"{FOLDER}/tiled.cu", f"transpose_{kind}<{turn.ctype}>")
    return _run(
        kernel,
        turn.operands,
        turn.arguments,
        grid=_blocks(turn, 32, 32),
        block=(32, 32),
    )


def several(
    x: Any,
    out: Any,
    tile: tuple[int, int] = (64, 64),
    threads: int = 512,
    group: int = GROUP,
) -> Callable:
    """Several elements per thread, tiles of any shape."""
    turn = checked(x, out)
    name = f"transpose_several<{turn.ctype},{tile[0]},{tile[1]},{threads}>"
    arguments = (*turn.arguments, _group(turn, tile[0], group))
    return _run(
        _kernel(f"{FOLDER}/several.cu", name),
        turn.operands,
        arguments,
        grid=_blocks(turn, *tile),
        block=threads,
    )


def vectors(
    x: Any,
    out: Any,
    tile: tuple[int, int] | None = None,
    threads: int = 256,
    group: int = GROUP,
    hint: int = 0,
) -> Callable:
    """16 bytes per access; tile: None for that of TILES. Raises ValueError where rows do not begin at
    multiples of 16 bytes."""
    turn = checked(x, out)
    if not turn.wide:
        raise ValueError(
            "transpose: vectors of 16 bytes need rows that begin at multiples of 16 bytes in both matrices: `several` takes all others"
        )
    if tile is None:
        tile, threads = TILES[turn.size]
    name = (
        f"transpose_vectors<{turn.ctype},{tile[0]},{tile[1]},{threads},{hint}>"
    )
    arguments = (*turn.arguments, _group(turn, tile[0], group))
    return _run(
        _kernel(f"{FOLDER}/vectors.cu", name),
        turn.operands,
        arguments,
        grid=_blocks(turn, *tile),
        block=threads,
        shared=tile[0] * tile[1] * turn.size,
    )


def aligned(
    x: Any,
    out: Any,
    read: int = 128,
    wide: int | None = None,
    threads: int = 512,
    span: int | None = None,
    group: int = GROUP,
) -> Callable:
    """Writes pieces that begin at multiples of `span` elements (None: of 32
    bytes), for rows of any address."""
    turn = checked(x, out)
    span = span or 32 // turn.size
    wide = wide or (32 if turn.size == 8 else 64)
    name = f"transpose_aligned<{turn.ctype},{read},{wide},{threads},{span}>"
    high = ct.cdiv(turn.rows + span - 1, read - span) if turn.rows else 0
    tiles = high * ct.cdiv(turn.columns, wide)
    if tiles > MOST_TILES:
        raise ValueError(f"transpose: {tiles} tiles for one grid")
    arguments = (*turn.arguments, min(_bands(group), max(1, high)))
    return _run(
        _kernel(f"{FOLDER}/aligned.cu", name),
        turn.operands,
        arguments,
        grid=tiles,
        block=threads,
    )


def tma(
    x: Any,
    out: Any,
    tile: tuple[int, int] = (64, 64),
    threads: int = 256,
    group: int = GROUP,
    stages: int = 2,
    going: int = 2,
    rotate: bool = False,
    walk: bool = True,
) -> Callable:
    """By the TMA, sm_90. walk: as many blocks as fit, which walk through the
    tiles; otherwise a block for each tile. Raises as `vectors`."""
    turn = checked(x, out)
    if not turn.wide:
        raise ValueError(
            "transpose: the TMA needs rows that begin at multiples of 16 bytes in both matrices: `several` takes all others"
        )
    if turn.rows * turn.size % 16:
        raise ValueError(
            f"transpose: rows of {turn.rows} elements of {turn.size} bytes in out: the TMA writes whole pieces of 16 bytes, and the last would reach beyond the row"
        )
    tiles = _blocks(turn, *tile)
    if not tiles:
        return lambda stream=None: None
    name = f"transpose_tma<{turn.ctype},{tile[0]},{tile[1]},{threads},{stages},{going},{str(rotate).lower()}>"
    kernel = _kernel(f"{FOLDER}/tma.cu", name)
    shared = (stages + going) * tile[0] * tile[1] * turn.size + 1024
    span = 128 // turn.size
    maps = (
        ct.tensor_map(x, (tile[0], span), swizzle=128),
        ct.tensor_map(out, (tile[1], span), swizzle=128),
    )
    resident = kernel.resources(threads, shared).blocks_per_sm
    if not resident:
        raise ValueError(f"transpose: {name} does not fit on an SM")
    blocks = resident * ct.device().sm_count if walk else tiles
    arguments = (*maps, turn.rows, turn.columns, _group(turn, tile[0], group))
    return _run(
        kernel,
        turn.operands,
        arguments,
        grid=min(tiles, blocks),
        block=threads,
        shared=shared,
    )


# --8<-- [start:choose]
def transpose(x: Any, out: Any) -> Callable:
    """The launch for these two matrices: `vectors` where all rows begin at
    multiples of 16 bytes and most tiles are whole, `aligned` elsewhere, and
    tiles of 8 rows or columns where there are hardly more."""
    turn = checked(x, out)
    if turn.columns < NARROW:
        return several(x, out, (256, 8), 256)
    if turn.rows < NARROW:
        return several(x, out, (8, 256), 256)
    (high, wide), _ = TILES[turn.size]
    whole = (turn.rows // high) * (turn.columns // wide)
    if turn.wide and 4 * whole >= 3 * _blocks(turn, high, wide):
        return vectors(x, out)
    return aligned(x, out)


# --8<-- [end:choose]


def in_place(
    x: Any,
    tile: int = 64,
    threads: int = 128,
    wide: bool | None = None,
    group: int = 1,
    both: bool = True,
) -> Callable:
    """x = x^T for a square x. wide: 16 bytes per access; None: where rows begin
    at multiples of 16 bytes."""
    take = ct.operands("transpose in place")
    a = take.write("x", x, None, (None, None), rows=1, most=MOST)
    n = a.shape[0]
    if a.shape[1] != n or a.size not in C_TYPES:
        raise ValueError(
            f"transpose in place: {list(a.shape)} of {a.dtype}: squares of elements of 1, 2, 4 or 8 bytes alone can be turned in their place"
        )
    if wide and not a.aligned(16):
        raise ValueError(
            "transpose in place: rows do not begin at multiples of 16 bytes"
        )
    wide = a.aligned(16) if wide is None else wide
    tiles = ct.cdiv(n, tile)
    pairs = tiles * (tiles + 1) // 2
    if pairs > MOST_TILES:
        raise ValueError(f"transpose in place: {pairs} pairs of tiles")
    name = "transpose_in_place_vectors" if wide else "transpose_in_place"
    more = f",{str(both).lower()}" if wide else ""
    kernel = _kernel(
        f"{FOLDER}/in_place.cu",
        f"{name}<{C_TYPES[a.size]},{tile},{threads}{more}>",
    )
    return _run(
        kernel,
        (a,),
        (a.address, n, a.stride, min(_bands(group), max(1, ct.cdiv(tiles, 2)))),
        grid=pairs,
        block=threads,
        shared=2 * tile * tile * a.size if wide else 0,
    )
