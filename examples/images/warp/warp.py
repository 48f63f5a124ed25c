"""Launchers of the kernels of this chapter.

    run = warp(image, out, matrix)   # uint8, height x width x 3
    run()                            # launches; returns at once

matrix: 2 x 3, where a pixel of the image goes, as OpenCV's warpAffine has it;
centers of pixels are at integers. Kernels get its inverse.

Rounding: positions are multiples of 2^-32 pixel, values are rounded to the
nearest integer, of two equally near ones to the even one. `filtered` is as
exact as a texture's weights of 8 bits are.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.images.warp import reference
from cudatut.book.images.warp.reference import BORDERS, ONE
from cudatut.book.images.warp.textures import Texture

FOLDER = "images/warp"
BLOCK = (16, 16)  # threads along a row, and rows
PIXELS = 4  # of a thread of warp_words
ROWS = 2  # of a thread of packed.cu
BY_WORDS = ("words", "packed", "tile")
TILE = (32, 8)  # threads of a block of tile.cu
HIGH = 32  # rows of its tile
MOST_SHARED = 48 << 10
MOST = 1 << 22  # pixels of an axis
FARTHEST = 1 << 30  # pixels from the image's first one
TAPS = {"nearest": 1, "linear": 2, "cubic": 4}
FLOATS = np.dtype([(name, "f4") for name in "abcdef"])
FIXED = np.dtype([(name, "i8") for name in "abcdef"])


@cache
def kernel(source: str, name: str, defines: tuple = ()) -> ct.Kernel:
    return ct.Kernel(f"{FOLDER}/{source}.cu", name, dict(defines))


def compile_ahead() -> None:
    """All kernels without macros side by side."""
    borders = [border.upper() for border in BORDERS]
    found = [
        ("warp", f"warp<{taps}, {border}>")
        for taps in TAPS.values()
        for border in borders
    ]
    found += [("warp", "warp_forward"), ("warp", "warp_float<CONSTANT>")]
    found += [("four", "pad"), ("four", "warp_points"), ("four", "between")]
    found += [("four", "warp_filtered")]
    found += [("packed", "warp_sampled"), ("packed", "warp_gathered")]
    for way in ("four", *BY_WORDS):
        found += [(way, f"warp_{way}<{border}>") for border in borders[:2]]
    ct.compile_ahead([(f"{FOLDER}/{file}.cu", name) for file, name in found])


def map_back(
    matrix: Any, height: int, width: int, beyond: tuple = (PIXELS, 0)
) -> np.void:
    """The inverse map as kernels get it, for an output of this size. Raises
    ValueError for a matrix without inverse, or that leads far away. beyond:
    columns and rows behind the last ones, at which threads look, too."""
    integers = reference.fixed(reference.inverted(matrix))
    more_x, more_y = beyond
    corners = (
        (x, y) for x in (0, width + more_x) for y in (0, height + more_y)
    )
    far = max(
        abs(a * x + b * y + c) for x, y in corners for a, b, c in integers
    )
    if far >= FARTHEST * ONE:
        raise ValueError(
            f"warp: the output reaches {far // ONE} pixels away, 2^30 at most"
        )
    flat = [v for row in integers for v in row]
    if any(abs(v) >= 1 << 63 for v in flat):
        raise ValueError("warp: the inverse has numbers of 2^31 and more")
    return np.array(tuple(flat), FIXED)[()]


def _images(
    name: str, image: Any, out: Any, channels: int = 3, align: int = 1
) -> tuple:
    take = ct.operands(name)
    shape = (None, None, channels)
    target = take.write("out", out, "uint8", shape, most=MOST, align=align)
    source = take.read("image", image, "uint8", shape, most=MOST, align=align)
    for one in (source, target):
        if 0 in one.shape:
            raise ValueError(f"{name}: {one.name} has no pixel: {one.shape}")
    return source, target


def _grid(name: str, width: int, height: int, block: tuple) -> tuple:
    grid = (ct.cdiv(width, block[0]), ct.cdiv(height, block[1]))
    if grid[1] > 65535:
        raise ValueError(f"{name}: {height} rows are too many for this block")
    return grid


def _choice(name: str, what: str, given: str, known: Any) -> None:
    if given not in known:
        raise ValueError(
            f"{name}: {what} {given!r} is not one of {', '.join(known)}"
        )


def _packed(name: str, block: tuple, plan: dict) -> int:
    """Rows of a thread of packed.cu, whose lanes exchange pixels."""
    if block[0] % 4 or block[0] * block[1] % 32:
        raise ValueError(
            f"{name}: a block of {block}: rows of 4, 8, 12 ... threads, 32, 64,"
            " 96 ... in all"
        )
    return plan.get("ROWS", ROWS)


def piece(back: np.void, high: int) -> tuple[tuple[int, int, int], int]:
    """Of the image, what the pixels of a tile of tile.cu need: columns, rows,
    words from one row to the next; and bytes of shared memory. Raises
    ValueError where these are too many."""
    a, b, _, d, e, _ = (abs(int(v)) for v in back)
    # Positions are this far apart at most; a neighbor follows.
    columns, rows = (
        (x * (TILE[0] - 1) + y * (high - 1)) // ONE + 3
        for x, y in ((a, b), (d, e))
    )
    pitch = (3 * (columns - 2) // 4 + 3) | 1  # odd: rows lie in other banks
    shared = 4 * rows * pitch
    if shared > MOST_SHARED:
        raise ValueError(
            f"warp: a tile looks at {rows} x {columns} pixels, and"
            f" {MOST_SHARED} bytes of shared memory have no room for them:"
            ' take way="packed"'
        )
    return (columns, rows, pitch), shared


def warp(
    image: Any,
    out: Any,
    matrix: Any,
    interpolation: str = "linear",
    border: str = "constant",
    value: int = 0,
    way: str = "plain",
    block: tuple = BLOCK,
    **plan: int,
) -> Callable:
    """out = the image, each pixel where the matrix sends it. interpolation:
    nearest, linear, cubic. border: what lies beyond the image: constant (then
    `value`), replicate, reflect_101, wrap. way: plain; float (linear, constant,
    positions in fp32); words, packed and tile (linear; constant or replicate;
    both arrays begin at multiples of 4 bytes). A block of packed is whole
    warps, of rows of 4, 8, 12 ... threads; that of tile is given, and maps
    that shrink by a lot need more shared memory than there is. plan: macros of
    these three. Raises TypeError, ValueError."""
    _choice("warp", "interpolation", interpolation, TAPS)
    _choice("warp", "border", border, BORDERS)
    _choice("warp", "way", way, ("plain", "float", *BY_WORDS))
    if not 0 <= value <= 255:
        raise ValueError(f"warp: value {value} is not in 0 to 255")
    can = {
        "plain": BORDERS,
        "float": ("constant",),
        "words": ("constant", "replicate"),
        "packed": ("constant", "replicate"),
        "tile": ("constant", "replicate"),
    }[way]
    if border not in can or (way != "plain" and interpolation != "linear"):
        raise ValueError(f"warp: {way} has no {interpolation}, {border}")
    if plan and way not in BY_WORDS:
        raise ValueError(f"warp: {sorted(plan)} belong to {BY_WORDS}")
    rows = 1
    if way == "packed":
        rows = _packed("warp", block, plan)
    elif way == "tile":
        block, rows = TILE, plan.get("HIGH", HIGH) // TILE[1]
    source, target = _images(
        "warp", image, out, align=4 if way in BY_WORDS else 1
    )
    (height, width), (out_height, out_width) = (
        one.shape[:2] for one in (source, target)
    )
    beyond = (max(block[0], PIXELS), rows * block[1])
    back = map_back(matrix, out_height, out_width, beyond)
    edge = border.upper()
    if way == "float":
        exact = reference.inverted(matrix)
        back = np.array(tuple(float(v) for row in exact for v in row), FLOATS)[
            ()
        ]
        one = kernel("warp", f"warp_float<{edge}>")
    elif way in BY_WORDS:
        macros = tuple(sorted(plan.items()))
        one = kernel(way, f"warp_{way}<{edge}>", macros)
    else:
        one = kernel("warp", f"warp<{TAPS[interpolation]}, {edge}>")
    more: tuple = ()
    shared = 0
    if way == "tile":
        more, shared = piece(back, rows * TILE[1])
    across = ct.cdiv(out_width, PIXELS) if way == "words" else out_width
    grid = _grid("warp", across, ct.cdiv(out_height, rows), block)

    def run(stream=None):
        one(
            target.address, source.address, back, out_height, out_width, height,
            width, value, *more, grid=grid, block=(*block, 1), shared=shared,
            stream=stream,
        )  # fmt: skip

    run.operands = source, target  # an address keeps no array alive
    return run


def forward(image: Any, out: Any, matrix: Any) -> Callable:
    """out, where a pixel of the image is sent to = that pixel. The others are
    left as they are. Raises TypeError, ValueError."""
    source, target = _images("forward", image, out)
    (height, width), (out_height, out_width) = (
        one.shape[:2] for one in (source, target)
    )
    reference.inverted(matrix)  # says what is wrong with it
    there = np.array(tuple(np.asarray(matrix).ravel()), FLOATS)[()]
    one = kernel("warp", "warp_forward")
    grid = _grid("forward", width, height, BLOCK)

    def run(stream=None):
        one(
            target.address, source.address, there, out_height, out_width, height,
            width, grid=grid, block=(*BLOCK, 1), stream=stream,
        )  # fmt: skip

    run.operands = source, target
    return run


def pitch_of(width: int) -> int:
    """Pixels from one row to the next, as a texture wants them."""
    return -(-width // 8) * 8


def pad(image: Any, out: Any) -> Callable:
    """out, uint8 of height x pitch_of(width) x 4 = the image and 255 as fourth
    channel. Columns behind the image are left as they are."""
    take = ct.operands("pad")
    source = take.read("image", image, "uint8", (None, None, 3), most=MOST)
    height, width, _ = source.shape
    if not (height and width):
        raise ValueError(f"pad: image has no pixel: {source.shape}")
    pitch = pitch_of(width)
    target = take.write("out", out, "uint8", (height, pitch, 4), align=4)
    one = kernel("four", "pad")
    grid = _grid("pad", width, height, BLOCK)

    def run(stream=None):
        one(
            target.address, source.address, height, width, pitch,
            grid=grid, block=(*BLOCK, 1), stream=stream,
        )  # fmt: skip

    run.operands = source, target
    return run


def four(
    pixels: Any,
    width: int,
    out: Any,
    matrix: Any,
    border: str = "constant",
    value: int = 0,
    block: tuple = BLOCK,
) -> Callable:
    """As `warp`, linear, on four channels. pixels: as `pad` writes them, of
    which `width` columns count. out: height x width x 4."""
    _choice("four", "border", border, BORDERS[:2])
    if not 0 <= value <= 255:
        raise ValueError(f"four: value {value} is not in 0 to 255")
    source, target = _images("four", pixels, out, channels=4, align=4)
    height, pitch, _ = source.shape
    if not 1 <= width <= pitch:
        raise ValueError(f"four: {width} columns of {pitch}")
    out_height, out_width, _ = target.shape
    back = map_back(matrix, out_height, out_width)
    one = kernel("four", f"warp_four<{border.upper()}>")
    grid = _grid("four", out_width, out_height, block)

    def run(stream=None):
        one(
            target.address, source.address, pitch, back, out_height, out_width,
            height, width, value, grid=grid, block=(*block, 1), stream=stream,
        )  # fmt: skip

    run.operands = source, target
    return run


def by_texture(
    pixels: Any,
    width: int,
    out: Any,
    matrix: Any,
    filtered: bool = False,
    border: str = "constant",
    array: bool = False,
    block: tuple = BLOCK,
    gather: bool = False,
    **plan: int,
) -> Callable:
    """As `four`, through a texture; beyond the image is 0 (constant), or its
    edge (replicate). filtered: the texture weighs; then out may have three
    channels, the block is one of `warp`'s packed, and plan may say ROWS.
    array: from a copy in a CUDA array, made here, of the pixels as they are
    now. gather: exact weights, from such an array, to three channels; plan may
    say WEIGHTS, too."""
    _choice("by_texture", "border", border, BORDERS[:2])
    take, shape = ct.operands("by_texture"), (None, None, 4)
    source = take.read("pixels", pixels, "uint8", shape, most=MOST, align=4)
    three = gather or (filtered and getattr(out, "shape", ())[2:] == (3,))
    shape = (None, None, 3 if three else 4)
    target = take.write("out", out, "uint8", shape, most=MOST, align=4)
    if 0 in target.shape:
        raise ValueError(f"by_texture: out has no pixel: {target.shape}")
    if plan and not three:
        raise ValueError(f"by_texture: {sorted(plan)} belong to three channels")
    out_height, out_width, _ = target.shape
    rows = _packed("by_texture", block, plan) if three else 1
    beyond = (block[0], rows * block[1])
    back = map_back(matrix, out_height, out_width, beyond)
    texture = Texture(
        pixels, width, filtered, border == "constant", array, gather
    )
    if three:
        name = "warp_gathered" if gather else "warp_sampled"
        one = kernel("packed", name, tuple(sorted(plan.items())))
    else:
        one = kernel("four", "warp_filtered" if filtered else "warp_points")
    grid = _grid("by_texture", out_width, ct.cdiv(out_height, rows), block)

    def run(stream=None):
        one(
            target.address, texture.handle, back, out_height, out_width,
            grid=grid, block=(*block, 1), stream=stream,
        )  # fmt: skip

    run.operands = source, target, texture
    return run
