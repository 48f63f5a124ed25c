"""Launchers of the kernels of this chapter, on images of uint8, three
channels, height x width x 3, of one pixel and more.

    run = swap_channels(image, out)   # BGR to RGB, and back
    run()                             # launches; returns at once
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import cudatut as ct

SOURCE = "images/pixels/pixels.cu"
BLOCK = (32, 8)  # pixels along a row, and rows
MOST_WIDTH = (1 << 31) - BLOCK[0]
MOST_HEIGHT = 65535 * BLOCK[1]  # a grid has so many blocks along y
THREADS = 256


@cache
def _kernel(name: str) -> ct.Kernel:
    return ct.Kernel(SOURCE, name)


def _image(name: str, image: Any) -> tuple[Any, Any]:
    take = ct.operands(name)
    found = take.read("image", image, "uint8", (None, None, 3))
    height, width, _ = found.shape
    if not (1 <= height <= MOST_HEIGHT and 1 <= width <= MOST_WIDTH):
        raise ValueError(
            f"{name}: an image of {height} x {width} pixels: 1 x 1 to {MOST_HEIGHT} x {MOST_WIDTH} are taken"
        )
    return take, found


def _over_image(name: str, image: Any, out: Any, shape: Callable) -> Callable:
    """A kernel with a thread for each pixel, in a grid over the image."""
    take, source = _image(name, image)
    height, width, _ = source.shape
    target = take.write("out", out, "uint8", shape(height, width))
    grid = (ct.cdiv(width, BLOCK[0]), ct.cdiv(height, BLOCK[1]))
    kernel = _kernel(name)
    arguments = (
        target.address,
        source.address,
        np.int32(height),
        np.int32(width),
    )

    def run(stream=None):
        kernel(*arguments, grid=grid, block=(*BLOCK, 1), stream=stream)

    run.operands = source, target  # an address keeps no array alive
    return run


def swap_channels(image: Any, out: Any) -> Callable:
    """out = image with its first and its third channel exchanged."""
    return _over_image("swap_channels", image, out, lambda h, w: (h, w, 3))


def to_chw(image: Any, out: Any) -> Callable:
    """out = image as three images of one channel, 3 x height x width."""
    return _over_image("to_chw", image, out, lambda h, w: (3, h, w))


def swap_four(image: Any, out: Any) -> Callable:
    """As swap_channels, four pixels per thread; both begin at multiples of 4."""
    take, source = _image("swap_four", image)
    target = take.write("out", out, "uint8", source.shape, align=4)
    if int(source.address) % 4:
        raise ValueError(
            "swap_four: image has to begin at a multiple of 4 bytes"
        )
    pixels = source.shape[0] * source.shape[1]
    blocks = ct.cdiv(ct.cdiv(pixels, 4), THREADS)
    if blocks > (1 << 31) - 1:
        raise ValueError(f"swap_four: {pixels} pixels are too many for a grid")
    kernel = _kernel("swap_four")
    arguments = target.address, source.address, np.int64(pixels)

    def run(stream=None):
        kernel(*arguments, grid=blocks, block=THREADS, stream=stream)

    run.operands = source, target
    return run
