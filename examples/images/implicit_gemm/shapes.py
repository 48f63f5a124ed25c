"""The rows of the factor B, which implicit GEMM never stores; nothing here needs a GPU.

What a convolution is stands in examples/images/shapes.py.
"""

import numpy as np

import cudatut as ct
from cudatut.book.images.shapes import (
    LARGE,
    MOST,
    RAGGED,
    SMALL,
    Shape,
    reference,
)

__all__ = [
    "LARGE",
    "MOST",
    "RAGGED",
    "SMALL",
    "Shape",
    "reference",
    "table",
    "table_last",
]


def table(shape: Shape, bk: int) -> tuple[np.ndarray, bool]:
    """The rows of B, as `offsets.cu` takes them, and whether a window's weights fit into the bits of a mask.

    The first step has what bk leaves over; then come rows without a weight.
    """
    rows, columns = shape.window
    channel, r, c = (
        axis.ravel()
        for axis in np.indices((shape.channels // shape.groups, rows, columns))
    )
    down, right = r * shape.dilation[0], c * shape.dilation[1]
    offset = (channel * shape.height + down) * shape.width + right
    bits = rows * columns <= 32
    which = (
        (np.uint32(1) << (r * columns + c).astype("uint32")).view("int32")
        if bits
        else down << 16 | right
    )
    depth = len(offset)
    first = depth - (ct.cdiv(depth, bk) - 1) * bk
    found = np.zeros((ct.cdiv(depth, bk) * bk, 2), "int32")
    if not bits:
        found[:, 1] = -1
    pairs = np.stack([offset, which], axis=1)
    found[:first] = pairs[:first]
    found[bk:] = pairs[first:]
    return found, bits


def table_last(shape: Shape, bk: int) -> tuple[np.ndarray, bool]:
    """The same for `gather.cu`: images with the channel last, and rows without a weight behind all others."""
    r, c, channel = (
        axis.ravel()
        for axis in np.indices((*shape.window, shape.channels // shape.groups))
    )
    down, right = r * shape.dilation[0], c * shape.dilation[1]
    offset = (down * shape.width + right) * shape.channels + channel
    bits = shape.window[0] * shape.window[1] <= 32
    which = (
        (np.uint32(1) << (r * shape.window[1] + c).astype("uint32")).view(
            "int32"
        )
        if bits
        else down << 16 | right
    )
    found = np.zeros((ct.cdiv(len(offset), bk) * bk, 2), "int32")
    if not bits:
        found[:, 1] = -1
    found[: len(offset)] = np.stack([offset, which], axis=1)
    return found, bits
