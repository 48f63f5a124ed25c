"""Launchers of the kernels of this chapter.

    run = maps(shape, images, weights, results)       # fp32, NCHW
    run = offsets(shape, images, weights, results)
    run = bf16(shape, images, weights, results)       # bf16 as uint16, NHWC
    run()                                             # launches; returns at once

weights in fp32: [filter][channel of the group][row][column]; in bf16: [filter][row][column][channel of the group]. All are
compiled and made ready here, not in the callable.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import cudatut as ct

from cudatut.book.images.implicit_gemm import im2col
from cudatut.book.images.implicit_gemm.shapes import MOST, Shape, table

FOLDER = "images/implicit_gemm"


class Tile(NamedTuple):
    """An instance of `offsets.cu`."""

    bm: int
    bn: int
    bk: int
    tm: int
    tn: int
    stages: int
    blocks: int

    def name(self, bits: bool) -> str:
        numbers = ",".join(map(str, self))
        return f"convolution<{numbers},{str(bits).lower()}>"

    @property
    def threads(self) -> int:
        return self.bm * self.bn // (self.tm * self.tn)

    @property
    def shared(self) -> int:
        tiles = self.stages * self.bk * (self.bm + 4 + self.bn)
        lane_rows = 8 if self.bm % (8 * self.tm) == 0 else 4
        wide, high = 32 // lane_rows * self.tn, lane_rows * 4 + 4
        return 4 * max(tiles, self.threads // 32 * wide * high)


class Boxes(NamedTuple):
    """An instance of `im2col_tma.cu`."""

    consumers: int
    bn: int
    stages: int

    @property
    def name(self) -> str:
        return f"convolve<{self.consumers},{self.bn},{self.stages}>"

    @property
    def shared(self) -> int:
        stage = (self.consumers * 64 + self.bn) * 128
        return self.stages * (stage + 16)


WIDE = Tile(64, 128, 16, 8, 8, 3, 3)
FEW = Tile(32, 64, 16, 4, 4, 3, 6)
BOXES = Boxes(2, 256, 4), Boxes(3, 128, 5), Boxes(2, 128, 6), Boxes(2, 64, 8)


@cache
def kernel(source: str, name: str, arch: str | None = None) -> ct.Kernel:
    return ct.Kernel(f"{FOLDER}/{source}", name, arch=arch)


def _taken(launcher, shape, images, weights, results, dtype, channels_last):
    shape.check(launcher)
    of_weights = shape.filters, shape.channels // shape.groups, *shape.window
    arrays = [
        (shape.images, shape.channels, shape.height, shape.width),
        of_weights,
        (shape.images, shape.filters, *shape.out),
    ]
    if channels_last:
        arrays = [(n, h, w, c) for n, c, h, w in arrays]
    taken = ct.operands(launcher)
    return (
        taken.read("images", images, dtype, arrays[0]),
        taken.read("weights", weights, dtype, arrays[1]),
        taken.write("results", results, dtype, arrays[2]),
    )


def _blocks(launcher: str, count: int) -> int:
    if count > MOST:
        raise ValueError(f"{launcher}: more than 2^31 - 1 blocks")
    return count


def maps(shape: Shape, images, weights, results) -> Callable[[], None]:
    """The first rung: index maps at each word."""
    x, w, y = _taken("maps", shape, images, weights, results, "float32", False)
    m, n, _ = shape.product
    function = kernel("maps.cu", "implicit_maps")
    grid = _blocks("maps", ct.cdiv(n, 16)), ct.cdiv(m, 16), shape.groups
    if max(grid[1:]) > 65535:
        raise ValueError("maps: too many filters or groups for a grid")
    given = shape.struct(), x.address, w.address, y.address

    def run() -> None:
        function(*given, grid=grid, block=(16, 16))

    run.operands = x, w, y
    return run


def offsets(
    shape: Shape, images, weights, results, tile: Tile | None = None
) -> Callable[[], None]:
    """The product's final kernel with a table of offsets. tile: instead of the one chosen."""
    x, w, y = _taken(
        "offsets", shape, images, weights, results, "float32", False
    )
    m, n, _ = shape.product
    if tile is None:
        tile = (
            FEW
            if ct.cdiv(m, 64) * ct.cdiv(n, 128) * shape.groups < 300
            else WIDE
        )
    rows, bits = table(shape, tile.bk)
    rows = ct.to_device(rows)
    function = kernel("offsets.cu", tile.name(bits))
    grid = (
        _blocks("offsets", ct.cdiv(m, tile.bm) * ct.cdiv(n, tile.bn)),
        shape.groups,
    )
    if shape.groups > 65535:
        raise ValueError("offsets: more than 65,535 groups")
    given = shape.struct(), x.address, w.address, rows, y.address

    def run() -> None:
        function(*given, grid=grid, block=tile.threads, shared=tile.shared)

    run.operands = x, w, y
    return run


def cost(shape: Shape, boxes: Boxes, sms: int) -> float:
    """Turns of the busiest SM, in products of 64 x 64; a turn of a narrow tile reads more for each product."""
    n, m, _ = shape.product  # of images' pixels m, of filters n
    tiles = ct.cdiv(m, boxes.consumers * 64) * ct.cdiv(n, boxes.bn)
    area = boxes.consumers * boxes.bn / 64
    slow = {256: 1.0, 128: 1.05, 64: 1.5}[boxes.bn]
    return ct.cdiv(tiles, sms) * area * slow


def bf16(
    shape: Shape, images, weights, results, boxes: Boxes | None = None
) -> Callable[[], None]:
    """On wgmma, with im2col by the TMA; one thread per result where its im2col mode cannot express the convolution."""
    x, w, y = _taken("bf16", shape, images, weights, results, "uint16", True)
    unaligned = any(int(one.address) % 16 for one in (x, w, y))
    if im2col.refused(shape) or unaligned:
        if boxes:
            raise ValueError(f"bf16: {im2col.refused(shape) or 'not aligned'}")
        return _any(shape, x, w, y)
    m, n, _ = shape.product
    sms = ct.device().sm_count
    boxes = boxes or min(BOXES, key=lambda one: cost(shape, one, sms))
    function = kernel("im2col_tma.cu", boxes.name, arch="sm_90a")
    pixels = boxes.consumers * 64
    of_images = im2col.im2col_map(images, shape, pixels)
    window = shape.window[0] * shape.window[1]
    taps = weights.reshape(shape.filters, window, shape.channels)
    of_weights = ct.tensor_map(taps, (boxes.bn, 1, 64), swizzle=128)
    tiles = ct.cdiv(n, pixels) * ct.cdiv(m, boxes.bn)
    grid = min(sms, tiles)
    given = of_images, of_weights, y.address, shape.struct()

    def run() -> None:
        function(*given, grid=grid, block=128 + pixels * 2, shared=boxes.shared)

    run.operands = x, w, y
    run.boxes = boxes
    return run


def _any(shape: Shape, x: Any, w: Any, y: Any) -> Callable[[], None]:
    m, n, _ = shape.product
    function = kernel("any_bf16.cu", "any_bf16")
    grid = _blocks("bf16", ct.cdiv(m * n * shape.groups, 256))
    given = shape.struct(), x.address, w.address, y.address

    def run() -> None:
        function(*given, grid=grid, block=256)

    run.operands = x, w, y
    return run
