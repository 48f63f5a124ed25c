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
NAMES = (
    "swap_channels", "swap_turned", "to_chw", "swap_four", "to_chw_four",
    "swap_sixteen", "brighter",
)  # fmt: skip


@cache
def _kernel(name: str) -> ct.Kernel:
    return ct.Kernel(SOURCE, name)


def compile_ahead() -> None:
    """All kernels side by side."""
    ct.compile_ahead([(SOURCE, name) for name in NAMES])


def _image(name: str, image: Any, align: int = 1) -> tuple[Any, Any]:
    take = ct.operands(name)
    found = take.read("image", image, "uint8", (None, None, 3), align=align)
    height, width, _ = found.shape
    if not (1 <= height <= MOST_HEIGHT and 1 <= width <= MOST_WIDTH):
        raise ValueError(
            f"{name}: an image of {height} x {width} pixels: 1 x 1 to {MOST_HEIGHT} x {MOST_WIDTH} are taken"
        )
    return take, found


def _planes(height: int, width: int) -> tuple[int, int, int]:
    return 3, height, width


def _pixels(height: int, width: int) -> tuple[int, int, int]:
    return height, width, 3


def _over_image(name: str, image: Any, out: Any, shape: Callable) -> Callable:
    """A kernel with a thread for each pixel, in a grid over the image."""
    take, source = _image(name, image)
    height, width, _ = source.shape
    target = take.write("out", out, "uint8", shape(height, width))
    across, down = width, height
    if name == "swap_turned":
        across, down = down, across
        if down > MOST_HEIGHT:
            raise ValueError(
                f"{name}: {width} columns are too many, at most {MOST_HEIGHT}"
            )
    grid = (ct.cdiv(across, BLOCK[0]), ct.cdiv(down, BLOCK[1]))
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
    return _over_image("swap_channels", image, out, _pixels)


def swap_turned(image: Any, out: Any) -> Callable:
    """As swap_channels, in a grid whose x goes down: right, and slow."""
    return _over_image("swap_turned", image, out, _pixels)


def to_chw(image: Any, out: Any) -> Callable:
    """out = image as three images of one channel, 3 x height x width."""
    return _over_image("to_chw", image, out, _planes)


def _several(
    name: str, image: Any, out: Any, shape: Callable, each: int
) -> Callable:
    """A kernel with a thread for each `each` pixels, in the order of memory."""
    take, source = _image(name, image, each)
    height, width, _ = source.shape
    target = take.write("out", out, "uint8", shape(height, width), align=each)
    pixels = height * width
    blocks = ct.cdiv(ct.cdiv(pixels, each), THREADS)
    if blocks > (1 << 31) - 1:
        raise ValueError(f"{name}: {pixels} pixels are too many for a grid")
    kernel = _kernel(name)
    arguments = target.address, source.address, np.int64(pixels)

    def run(stream=None):
        kernel(*arguments, grid=blocks, block=THREADS, stream=stream)

    run.operands = source, target
    return run


def swap_four(image: Any, out: Any) -> Callable:
    """As swap_channels, four pixels per thread; both begin at multiples of 4."""
    return _several("swap_four", image, out, _pixels, 4)


def to_chw_four(image: Any, out: Any) -> Callable:
    """As to_chw, four pixels per thread; both begin at multiples of 4. Slower
    where the number of pixels is no multiple of 4."""
    return _several("to_chw_four", image, out, _planes, 4)


def swap_sixteen(image: Any, out: Any) -> Callable:
    """As swap_four with 16 pixels and multiples of 16."""
    return _several("swap_sixteen", image, out, _pixels, 16)


def brighter(image: Any, out: Any, add: int, keep: bool = True) -> Callable:
    """out = image + add, for add from 0 to 255. keep: what would be more than
    255 is 255; else of a sum its last eight bits."""
    take, source = _image("brighter", image)
    target = take.write("out", out, "uint8", source.shape)
    if not 0 <= add <= 255:
        raise ValueError(f"brighter: add {add} is not in 0 to 255")
    count = 3 * source.shape[0] * source.shape[1]
    blocks = ct.cdiv(count, THREADS)
    if blocks > (1 << 31) - 1:
        raise ValueError(f"brighter: {count} bytes are too many for a grid")
    kernel = _kernel("brighter")
    arguments = (
        target.address,
        source.address,
        np.int64(count),
        np.int32(add),
        np.int32(keep),
    )

    def run(stream=None):
        kernel(*arguments, grid=blocks, block=THREADS, stream=stream)

    run.operands = source, target
    return run
