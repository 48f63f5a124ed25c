"""Launchers of this chapter: im2col, and a convolution as im2col and a product,
in fp32, NCHW.

    run = im2col(shape, images, matrix)               # one rung of the copy
    run = convolve(shape, images, weights, results)   # all of it
    run()                                             # launches; returns at once

The matrix has a row for each (channel, row, column) of a window, and a column
for each (image, row, column) of a result; rows lie `pitch` words apart. Its
rows of a group lie together, so that one im2col serves the products of all
groups.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct
from cudatut.book.images.shapes import MOST, Shape
from cudatut.book.published.sgemm import sgemm

FOLDER = "images/im2col"
KINDS = ("words", "places", "four", "row")
THREADS = 256
BLOCKS = 4096  # more of them have several channels each
ROOM = 2 << 30  # bytes that the matrix may take, unless one image needs more
COLUMNS = MOST - 1024  # of a product


@cache
def kernel(source: str, name: str, defines: tuple = ()) -> ct.Kernel:
    return ct.Kernel(f"{FOLDER}/{source}.cu", name, defines=dict(defines))


# --8<-- [start:memory]
def extents(shape: Shape, at_once: int | None = None) -> tuple[int, int]:
    """Rows of the matrix, and its pitch, for so many images (None: all)."""
    high, wide = shape.out
    images = shape.images if at_once is None else at_once
    rows = shape.channels * shape.window[0] * shape.window[1]
    return rows, ct.cdiv(images * high * wide, 4) * 4


class Memory(NamedTuple):
    """Bytes of what a convolution by im2col and product has in memory."""

    images: int
    weights: int
    results: int
    matrix: int
    product: int  # 0 where it is written to the results at once

    @property
    def growth(self) -> float:
        """How many times the images the matrix is."""
        return self.matrix / self.images


def memory(shape: Shape, at_once: int | None = None) -> Memory:
    """What is needed; at_once: images of one matrix, None for all."""
    at_once = shape.images if at_once is None else at_once
    rows, pitch = extents(shape, at_once)
    high, wide = shape.out
    return Memory(
        4 * shape.images * shape.channels * shape.height * shape.width,
        4 * shape.filters * rows // shape.groups,
        4 * shape.images * shape.filters * high * wide,
        4 * rows * pitch,
        0 if straight(shape, at_once) else 4 * shape.filters * pitch,
    )


def straight(shape: Shape, at_once: int) -> bool:
    """Whether products write the results themselves: a product of one image and
    one group has them in their order."""
    return at_once == 1 and shape.groups == 1


def fitting(shape: Shape, room: int = ROOM) -> int:
    """Images of one matrix: as many as have room, one at least."""
    high, wide = shape.out
    rows, _ = extents(shape, 1)
    columns = min(room // (4 * rows), COLUMNS) // 4 * 4
    return max(1, min(shape.images, columns // (high * wide)))


# --8<-- [end:memory]


def _grid(kind: str, shape: Shape, pitch: int, most: int) -> tuple[int, int]:
    """Blocks of columns, and rows of blocks: as many as channels, or fewer, each
    with several channels, where there are more than `most` blocks all the same."""
    rows = shape.channels * shape.window[0] * shape.window[1]
    threads = {"words": rows * pitch, "places": pitch}.get(kind, pitch // 4)
    blocks = ct.cdiv(threads, THREADS)
    if blocks > MOST:
        raise ValueError(f"im2col: {blocks} blocks, a grid has {MOST}")
    if kind == "words":
        return blocks, 1
    each = max(1, blocks * shape.channels // most)  # channels of a block
    return blocks, min(ct.cdiv(shape.channels, each), 65535)


def refuses_row(shape: Shape) -> str | None:
    """Why `row` cannot write the matrix; None if it can."""
    if shape.dilation[1] != 1:
        return "it is dilated to the right"
    if shape.stride[1] > 2:
        return "its stride to the right is above 2"
    if shape.window[1] > 7:
        return "its window has more than 7 columns"
    return None


def chosen(shape: Shape) -> str:
    """The rung that suits it: `row` where four places lie in one row, and their
    windows share words."""
    shares = shape.window[1] > 1 and shape.out[1] % 4 == 0
    return "row" if shares and refuses_row(shape) is None else "four"


def _filled(
    kind: str,
    shape: Shape,
    address: int,
    matrix: Any,
    pitch: int,
    defines: tuple = (),
    blocks: int = BLOCKS,
):
    """A callable that writes the matrix of the images that begin there."""
    if kind not in KINDS:
        raise ValueError(f"im2col: no kernel {kind!r}: {', '.join(KINDS)}")
    name = f"im2col_{kind}"
    if kind == "row":
        if why := refuses_row(shape):
            raise ValueError(f"im2col: {why}: `four` takes it")
        name += f"<{shape.window[1]},{shape.stride[1]}>"
    function = kernel("im2col", name, defines)
    grid = _grid(kind, shape, pitch, blocks)
    given = shape.struct(), pitch, np.uint64(address), matrix

    def run(stream=None) -> None:
        function(*given, grid=grid, block=THREADS, stream=stream)

    return run


def im2col(
    shape: Shape,
    images: Any,
    matrix: Any,
    kind: str | None = None,
    defines: tuple = (),
    blocks: int = BLOCKS,
):
    """matrix = the windows of all images. kind: one of KINDS, None for the one
    that suits; defines: macros and their values; blocks: about how many before a
    thread has several channels. matrix: float32, of `extents(shape)`; its
    address a multiple of 16."""
    shape.check("im2col")
    take = ct.operands("im2col")
    x = take.read(
        "images",
        images,
        "float32",
        (shape.images, shape.channels, shape.height, shape.width),
    )
    rows, pitch = extents(shape)
    m = take.write("matrix", matrix, "float32", (rows, pitch), align=16)
    kind = kind or chosen(shape)
    run = _filled(
        kind, shape, int(x.address), m.address, pitch, defines, blocks
    )
    run.operands = x, m
    return run


# --8<-- [start:convolve]
def convolve(
    shape: Shape,
    images: Any,
    weights: Any,
    results: Any,
    at_once: int | None = None,
    kind: str | None = None,
    stream: Any = None,
) -> Callable[[], None]:
    """The convolution; `.memory` counts its bytes.

    at_once: images of one matrix; None: as many as have ROOM. The matrix is
    allocated here. All launches are made on `stream`. Raises ValueError,
    TypeError.
    """
    shape.check("convolve")
    if at_once is not None and at_once < 1:
        raise ValueError(f"convolve: {at_once} images at once")
    take = ct.operands("convolve")
    group = shape.channels // shape.groups
    high, wide = shape.out
    x = take.read(
        "images",
        images,
        "float32",
        (shape.images, shape.channels, shape.height, shape.width),
    )
    w = take.read(
        "weights", weights, "float32", (shape.filters, group, *shape.window)
    )
    y = take.write(
        "results",
        results,
        "float32",
        (shape.images, shape.filters, high, wide),
    )
    at_once = min(at_once or fitting(shape), shape.images)
    rows, pitch = extents(shape, at_once)
    if pitch > COLUMNS:
        raise ValueError(
            f"convolve: a matrix of {pitch} columns: at most {COLUMNS}"
        )
    if rows > COLUMNS:
        raise ValueError(
            f"convolve: a matrix of {rows} rows: at most {COLUMNS}"
        )
    matrix = ct.empty((rows, pitch), "float32")
    direct = straight(shape, at_once)
    product = None if direct else ct.empty((shape.filters, pitch), "float32")
    steps = []
    for first in range(0, shape.images, at_once):
        some = shape._replace(images=min(at_once, shape.images - first))
        _, step = extents(some)
        start = int(x.address) + 4 * first * (x.width * x.count // shape.images)
        fill = _filled(kind or chosen(some), some, start, matrix, step)
        steps.append(partial(fill, stream))
        columns = high * wide if direct else step
        for g in range(shape.groups):
            m, depth = shape.filters // shape.groups, rows // shape.groups
            to = results[first : first + 1] if direct else product[g * m :]
            steps.append(
                sgemm.launcher(
                    m,
                    columns,
                    depth,
                    1.0,
                    weights[g * m : (g + 1) * m],
                    depth,
                    # Rows of this step's matrix lie `step` words apart.
                    matrix.reshape(-1)[g * depth * step :],
                    step,
                    0.0,
                    to,
                    high * wide if direct else pitch,
                    stream=stream,
                )
            )
        if not direct:
            start = int(y.address) + 4 * first * shape.filters * high * wide
            move = _moved(some, product, pitch, start)
            steps.append(partial(move, stream))

    def run() -> None:
        for call in steps:
            call()

    run.operands, run.matrix, run.product = (x, w, y), matrix, product
    run.memory, run.at_once = memory(shape, at_once), at_once
    return run


# --8<-- [end:convolve]


def _moved(shape: Shape, product: Any, pitch: int, address: int) -> Callable:
    high, wide = shape.out
    count = shape.images * shape.filters * high * wide
    blocks = ct.cdiv(count, THREADS)
    if blocks > MOST:
        raise ValueError(f"convolve: {blocks} blocks, a grid has {MOST}")
    function = kernel("images_first", "images_first")
    given = (
        shape.images, shape.filters, high * wide, pitch, product,
        np.uint64(address),
    )  # fmt: skip

    def run(stream=None) -> None:
        function(*given, grid=blocks, block=THREADS, stream=stream)

    return run


def pointwise(
    shape: Shape, images: Any, weights: Any, results: Any, stream: Any = None
) -> Callable[[], None]:
    """A convolution whose windows are single words, all of them: the images are
    their own matrix, and each is a product. Raises ValueError for another."""
    shape.check("pointwise")
    if (shape.window, shape.stride, shape.pad) != ((1, 1), (1, 1), (0, 0)):
        raise ValueError(
            "pointwise: windows of 1 x 1, strides of 1, no padding: `convolve` takes the rest"
        )
    if shape.groups != 1:
        raise ValueError("pointwise: one group: `convolve` takes the rest")
    plane = shape.height * shape.width
    take = ct.operands("pointwise")
    given = [
        take.read(
            "images",
            images,
            "float32",
            (shape.images, shape.channels, shape.height, shape.width),
        ),
        take.read(
            "weights", weights, "float32", (shape.filters, shape.channels, 1, 1)
        ),
        take.write(
            "results",
            results,
            "float32",
            (shape.images, shape.filters, shape.height, shape.width),
        ),
    ]
    steps = [
        sgemm.launcher(
            shape.filters, plane, shape.channels, 1.0, weights, shape.channels,
            images[i : i + 1], plane, 0.0, results[i : i + 1], plane,
            stream=stream,
        )
        for i in range(shape.images)
    ]  # fmt: skip

    def run() -> None:
        for step in steps:
            step()

    run.operands = tuple(given)
    return run
