"""Launchers of the kernels of this chapter.

    run = fp32(shape, images, weights, results)       # NCHW; one of the next five
    run = maps(shape, images, weights, results)
    run = offsets(shape, images, weights, results)
    run = taps(shape, images, weights, results)
    run = lines(shape, images, weights, results)
    run = boxes(shape, images, weights, results)
    run = bf16(shape, images, weights, results)       # bf16 as uint16, NHWC
    run()                                             # launches; returns at once

weights in fp32: [filter][channel of the group][row][column]; in bf16: [filter][row][column][channel of the group]. All are
compiled and made ready here, not in the callable. What a callable needs besides, it allocates once: two of the same
launcher may run at the same time, one callable must not run twice at a time.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct

from cudatut.book.images.implicit_gemm import im2col
from cudatut.book.images.implicit_gemm.shapes import table, table_last
from cudatut.book.images.shapes import MOST, Shape
from cudatut.book.published.sgemm import sgemm

FOLDER = "images/implicit_gemm"
DEEP = 16  # channels of a step in fp32
MOST_PARTS = 16  # what the final product's `add_parts` adds at once


class Tile(NamedTuple):
    """Numbers of an instance of `offsets.cu`, `taps.cu` or `boxes.cu`."""

    bm: int
    bn: int
    bk: int
    tm: int
    tn: int
    stages: int
    blocks: int

    def name(self, *further: Any) -> str:
        numbers = ",".join(
            str(x).lower() if isinstance(x, bool) else str(x)
            for x in (*self, *further)
        )
        return f"convolution<{numbers}>"

    @property
    def threads(self) -> int:
        return self.bm * self.bn // (self.tm * self.tn)

    def shared(self, padding: int = 0) -> int:
        """padding: words that the lines of A have besides."""
        tiles = self.stages * self.bk * (self.bm + padding + self.bn)
        lane_rows = 8 if self.bm % (8 * self.tm) == 0 else 4
        wide, high = 32 // lane_rows * self.tn, lane_rows * 4 + 4
        return 4 * max(tiles, self.threads // 32 * wide * high)

    @property
    def config(self) -> sgemm.Config:
        """What the product knows of a tile of this size."""
        return CONFIGS[self]


class Boxes(NamedTuple):
    """An instance of `im2col_tma.cu`."""

    consumers: int
    bn: int
    stages: int
    bk: int = 64

    @property
    def name(self) -> str:
        return f"convolve<{','.join(map(str, self))}>"

    @property
    def pixels(self) -> int:
        return self.consumers * 64

    @property
    def shared(self) -> int:
        stage = (self.pixels + self.bn) * self.bk * 2 + 16
        return self.stages * stage + self.pixels * 128 + 16


CONFIGS = {
    Tile(*tuple(vars(one).values())[:7]): one
    for one in sgemm.CONFIGS
    # A thread has whole columns of B.
    if one.threads % one.bn == 0 and one.bk == DEEP
}
WIDE, *_ = CONFIGS
OF_LINES = Tile(*WIDE[:5], 2, 3)
# For groups of few filters.
NARROW = Tile(16, 64, 16, 4, 4, 3, 8)
CONFIGS[NARROW] = sgemm.Config(*NARROW, 0.45, 0.3, 1000.0, 500.0, 0.85)
BOXES = tuple(
    Boxes(*numbers)
    for numbers in (
        (2, 256, 4), (3, 128, 5), (2, 192, 5), (2, 128, 6), (3, 64, 6),
        (2, 64, 8), (2, 128, 12, 32), (3, 64, 12, 32),
    )
)  # fmt: skip
PATCHES = (8, 8), (4, 4), (4, 16)  # of boxes.cu: rows, columns
STRIPS = (1, 64), (1, 16)  # the same where an image may be one row


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


def _grid(launcher: str, blocks: int, *further: int) -> tuple[int, ...]:
    if blocks > MOST:
        raise ValueError(f"{launcher}: more than 2^31 - 1 blocks")
    if max(further, default=0) > 65535:
        raise ValueError(f"{launcher}: more than 65,535 groups, or filters")
    return blocks, *further


def maps(shape: Shape, images, weights, results) -> Callable[[], None]:
    """The first rung: index maps at each word."""
    x, w, y = _taken("maps", shape, images, weights, results, "float32", False)
    m, n, _ = shape.product
    function = kernel("maps.cu", "implicit_maps")
    grid = _grid("maps", ct.cdiv(n, 16), ct.cdiv(m, 16), shape.groups)
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
    m, n, depth = shape.product
    if tile is None:
        tile = min(CONFIGS, key=lambda one: cost(shape, one, depth))
    rows, bits = table(shape, tile.bk)
    rows = ct.to_device(rows)
    function = kernel("offsets.cu", tile.name(bits))
    tiles = ct.cdiv(m, tile.bm) * ct.cdiv(n, tile.bn)
    grid = _grid("offsets", tiles, shape.groups)
    given = shape.struct(), x.address, w.address, rows, y.address

    def launched_by(function) -> Callable[[], None]:
        """The same launch of another kernel."""

        def run() -> None:
            function(
                *given, grid=grid, block=tile.threads, shared=tile.shared(4)
            )

        run.operands, run.tile, run.parts = (x, w, y), tile, 1
        return run

    run = launched_by(function)
    run.launched_by = launched_by
    return run


# --8<-- [start:cost]
def cost(
    shape: Shape, tile: Tile, depth: int, words: int = 1, parts: int = 1
) -> float:
    """Cycles, as the product estimates them; words: of a copy of B; depth: of
    all steps, of which a block has a part."""
    m, n, _ = shape.product
    config, sms = tile.config, ct.device().sm_count
    tiles = ct.cdiv(m, tile.bm) * ct.cdiv(n, tile.bn) * shape.groups
    part = ct.cdiv(ct.cdiv(depth, tile.bk), parts) * tile.bk
    cycles = sgemm.span(config, tiles * parts, part, sms, words)
    if parts > 1:
        costs, left = sgemm.COSTS, ct.cdiv(tiles * parts, sms)
        area = 4 * tile.bm * tile.bn
        cycles += costs.share_tile + area * min(tile.blocks, left) / costs.leave
        cycles += area * parts / costs.collect
    return cycles


# --8<-- [end:cost]


def turned(shape: Shape, address: Any, bk: int):
    """Weights for `taps` and `boxes`: what turns them, where they go to, and words from a line to the next."""
    m, _, _ = shape.product
    channels = shape.channels // shape.groups
    window = shape.window[0] * shape.window[1]
    deep, pitch = ct.cdiv(channels, bk) * bk, ct.cdiv(m, 4) * 4
    lines = shape.groups * window * deep
    if lines * pitch > MOST:
        raise ValueError(f"taps: too many weights: {shape}")
    to = ct.to_device(np.zeros((lines, pitch), "float32"))
    function = kernel("taps.cu", "turned_weights")
    grid = _grid(
        "taps", ct.cdiv(channels * window, 32), ct.cdiv(m, 32), shape.groups
    )
    given = address, to, m, channels, window, deep, pitch

    def run() -> None:
        function(*given, grid=grid, block=(32, 8))

    return run, to, pitch


def pointwise(shape: Shape) -> bool:
    """Whether results lie as their images do."""
    return (shape.window, shape.stride, shape.pad) == ((1, 1), (1, 1), (0, 0))


def words_of(shape: Shape, address: int) -> int:
    """Words of a copy of `taps`: 4 where four results' words are neighbors."""
    aligned = shape.height * shape.width % 4 == 0 and address % 16 == 0
    return 4 if pointwise(shape) and aligned else 1


def taps(
    shape: Shape,
    images,
    weights,
    results,
    tile: Tile | None = None,
    parts: int | None = None,
) -> Callable[[], None]:
    """Depth in the order of taps; tile, parts: instead of those chosen."""
    x, w, y = _taken("taps", shape, images, weights, results, "float32", False)
    m, n, _ = shape.product
    channels = shape.channels // shape.groups
    words = words_of(shape, int(x.address))
    steps = shape.window[0] * shape.window[1] * ct.cdiv(channels, DEEP)

    def cuts() -> list[tuple[Tile, int]]:
        every = range(1, min(MOST_PARTS, ct.cdiv(steps, 2)) + 1)
        return [
            (one, some)
            for one in ((tile,) if tile else CONFIGS)
            for some in ((parts,) if parts else every)
        ]

    tile, parts = min(
        cuts(), key=lambda cut: cost(shape, cut[0], steps * DEEP, words, cut[1])
    )
    per_part = ct.cdiv(steps, parts)
    parts = ct.cdiv(steps, per_part)
    turn, to, pitch = turned(shape, w.address, tile.bk)
    function = kernel("taps.cu", tile.name(words, channels % tile.bk == 0))
    tiles = ct.cdiv(m, tile.bm) * ct.cdiv(n, tile.bn)
    grid = _grid("taps", tiles * parts, shape.groups)
    room = tiles * parts * shape.groups * tile.bm * tile.bn if parts > 1 else 4
    partials = ct.empty(room, "float32")
    tickets = ct.to_device(np.zeros(tiles * shape.groups, "uint32"))
    given = (
        shape.struct(), x.address, to, y.address, pitch, parts, per_part,
        partials, tickets,
    )  # fmt: skip

    def run() -> None:
        turn()
        function(*given, grid=grid, block=tile.threads, shared=tile.shared())

    run.operands, run.tile, run.parts = (x, w, y), tile, parts
    return run


def no_lines(shape: Shape, address: int) -> str | None:
    """Why `lines` cannot compute this convolution; None if it can."""
    right = shape.window[1], shape.stride[1], shape.pad[1], shape.dilation[1]
    if right != (3, 1, 1, 1):
        return "windows need three columns, and the image's width as results"
    if shape.width % 4 or address % 16:
        return "rows of images must begin at multiples of 16 bytes"
    return None


def lines(
    shape: Shape, images, weights, results, tile: Tile = OF_LINES
) -> Callable[[], None]:
    """One copy of B for three taps."""
    x, w, y = _taken("lines", shape, images, weights, results, "float32", False)
    if why := no_lines(shape, int(x.address)):
        raise ValueError(f"lines: {why}: {shape}")
    m, n, _ = shape.product
    turn, to, pitch = turned(shape, w.address, tile.bk)
    deep = ct.cdiv(shape.channels // shape.groups, tile.bk) * tile.bk
    function = kernel("lines.cu", tile.name())
    tiles = ct.cdiv(m, tile.bm) * ct.cdiv(n, tile.bn)
    grid = _grid("lines", tiles, shape.groups)
    given = shape.struct(), x.address, to, y.address, pitch, deep
    stage = tile.bk * (3 * tile.bm + tile.bn + 12)
    shared = max(4 * tile.stages * stage, tile.shared())

    def run() -> None:
        turn()
        function(*given, grid=grid, block=tile.threads, shared=shared)

    run.operands, run.tile, run.parts = (x, w, y), tile, 1
    return run


def flat(shape: Shape) -> Shape:
    """With images of one row, if that is the same convolution."""
    if not pointwise(shape):
        return shape
    return shape._replace(height=1, width=shape.height * shape.width)


def no_boxes(shape: Shape, address: int) -> str | None:
    """Why `boxes` cannot compute this convolution; None if it can."""
    if shape.stride != (1, 1):
        return "strides other than 1"
    if flat(shape).width % 4 or address % 16:
        return "rows of images must begin at multiples of 16 bytes"
    if shape.pad[1] % 4 or (shape.window[1] > 1 and shape.dilation[1] % 4):
        return "boxes must begin at multiples of 16 bytes"
    if shape.groups > 1 and shape.channels // shape.groups % DEEP:
        return f"the channels of a group must be a multiple of {DEEP}"
    return None


def patches(shape: Shape, patch: tuple[int, int]) -> int:
    """How many boxes cover all results."""
    high, wide = map(ct.cdiv, shape.out, patch)
    return shape.images * high * wide


def best_patch(shape: Shape) -> tuple[int, int]:
    """That which covers least beside the results."""
    some = PATCHES if shape.height > 1 else STRIPS
    return min(some, key=lambda one: patches(shape, one) * one[0] * one[1])


def boxes(
    shape: Shape,
    images,
    weights,
    results,
    tile: Tile = WIDE,
    patch: tuple[int, int] | None = None,
) -> Callable[[], None]:
    """The images by the TMA; patch: rows and columns of a box, instead of those that fit best."""
    x, w, y = _taken("boxes", shape, images, weights, results, "float32", False)
    if why := no_boxes(shape, int(x.address)):
        raise ValueError(f"boxes: {why}: {shape}")

    shape = flat(shape)
    patch = patch or best_patch(shape)
    turn, to, _ = turned(shape, w.address, tile.bk)
    function = kernel("boxes.cu", tile.name(*patch))
    of_images = ct.tensor_map(images.reshape(shape[:4]), (1, tile.bk, *patch))
    of_weights = ct.tensor_map(to, (tile.bk, tile.bm))
    m, _, _ = shape.product
    columns = ct.cdiv(patches(shape, patch), tile.bn // (patch[0] * patch[1]))
    grid = _grid("boxes", columns * ct.cdiv(m, tile.bm), shape.groups)
    given = of_images, of_weights, y.address, shape.struct()

    def run() -> None:
        turn()
        function(*given, grid=grid, block=tile.threads, shared=tile.shared())

    run.operands, run.tile, run.patch, run.parts = (x, w, y), tile, patch, 1
    return run


def fp32(shape: Shape, images, weights, results) -> Callable[[], None]:
    """The kernel that should be fastest."""
    channels = shape.channels // shape.groups
    deep = ct.cdiv(channels, DEEP) * DEEP
    if channels < DEEP or deep > channels * 1.2:
        return offsets(shape, images, weights, results)
    x, _, _ = _taken("fp32", shape, images, weights, results, "float32", False)
    m, n, _ = shape.product
    # Tiles that fill the GPU; with fewer, parts of the depth are better.
    tiles = ct.cdiv(m, WIDE.bm) * ct.cdiv(n, WIDE.bn) * shape.groups
    many = tiles >= 2 * ct.device().sm_count and m > WIDE.bm // 2
    if many and not no_lines(shape, int(x.address)):
        return lines(shape, images, weights, results)
    return taps(shape, images, weights, results)


# --8<-- [start:boxes]
STEP_BYTES, START, PART = 60, 1500, 2000  # bytes a cycle; cycles


def cost_bf16(shape: Shape, boxes: Boxes, parts: int, sms: int) -> float:
    """Cycles: of the busiest SM, whose tensor cores do 2,048 FMAs in one, or
    wait for the boxes of a step."""
    n, m, _ = shape.product  # filters, pixels
    depth = shape.channels // shape.groups
    steps = shape.window[0] * shape.window[1] * ct.cdiv(depth, boxes.bk)
    tiles = ct.cdiv(m, boxes.pixels) * ct.cdiv(n, boxes.bn) * shape.groups
    products = boxes.pixels * boxes.bn * boxes.bk / 2048
    copies = (boxes.pixels + boxes.bn) * boxes.bk * 2 / STEP_BYTES
    of_tile = ct.cdiv(steps, parts) * max(products, copies) + START
    if parts > 1:
        of_tile += PART + boxes.pixels * boxes.bn * 4 * (1 + parts) / STEP_BYTES
    return ct.cdiv(tiles * parts, sms) * of_tile


def wider(shape: Shape, bk: int) -> Shape | None:
    """With groups put together, so that each has whole boxes of channels; the
    weights between its parts are 0. None where groups cannot be put together."""
    if shape.groups == 1:
        return shape
    channels, filters = (
        shape.channels // shape.groups,
        shape.filters // shape.groups,
    )
    for some in range(1, shape.groups + 1):
        if shape.groups % some or some * channels % bk or some * filters % 8:
            continue
        return shape._replace(groups=shape.groups // some)
    return None


# --8<-- [end:boxes]


def bf16(
    shape: Shape,
    images,
    weights,
    results,
    boxes: Boxes | None = None,
    parts: int | None = None,
) -> Callable[[], None]:
    """On wgmma, with im2col by the TMA, or gathered where its im2col mode cannot express the convolution.

    boxes, parts: instead of those chosen. Where groups have fewer channels than a box, several are computed as one: an
    infinity or NaN in a channel then reaches the results of all filters of these groups.
    """
    x, w, y = _taken("bf16", shape, images, weights, results, "uint16", True)
    unaligned = any(int(one.address) % 16 for one in (x, w, y))
    why = "not aligned" if unaligned else im2col.refused(shape)
    sms = ct.device().sm_count
    possible = []
    for one in (boxes,) if boxes else BOXES:
        together = wider(shape, one.bk)
        if why or together is None:
            continue
        depth = together.channels // together.groups
        steps = shape.window[0] * shape.window[1] * ct.cdiv(depth, one.bk)
        every = (1, 2, 3, 4, 6, 8, 12, 16)
        possible += [
            (one, some, together)
            for some in ((parts,) if parts else every)
            if some == 1 or parts or steps >= 4 * some
        ]
    if not possible:
        if boxes:
            raise ValueError(f"bf16: {why or 'groups'}: {shape}")
        return gather(shape, images, weights, results)
    boxes, parts, together = min(
        possible, key=lambda it: cost_bf16(it[2], it[0], it[1], sms)
    )
    m, n, _ = together.product
    depth = together.channels // together.groups
    window = shape.window[0] * shape.window[1]
    pack, taps = None, weights
    if together != shape:
        pack, taps = packed(shape, w.address, depth, window * depth, together)
    taps = taps.reshape(shape.filters, window, depth)
    steps = window * ct.cdiv(depth, boxes.bk)
    per_part = ct.cdiv(steps, parts)
    parts = ct.cdiv(steps, per_part)
    function = kernel("im2col_tma.cu", boxes.name, arch="sm_90a")
    of_images = im2col.im2col_map(images, shape, boxes.pixels, boxes.bk)
    of_weights = ct.tensor_map(
        taps, (boxes.bn, 1, boxes.bk), swizzle=2 * boxes.bk
    )
    tiles = ct.cdiv(n, boxes.pixels) * ct.cdiv(m, boxes.bn) * together.groups
    grid = min(sms, tiles * parts)
    room = tiles * parts * boxes.pixels * boxes.bn if parts > 1 else 4
    partials = ct.empty(room, "float32")
    tickets = ct.to_device(np.zeros(tiles * boxes.consumers, "uint32"))
    given = (
        of_images, of_weights, y.address, together.struct(), parts, per_part,
        partials, tickets,
    )  # fmt: skip
    threads = 128 + boxes.pixels * 2

    def run() -> None:
        if pack:
            pack()
        function(*given, grid=grid, block=threads, shared=boxes.shared)

    run.operands, run.boxes, run.parts = (x, w, y), boxes, parts
    run.weights = taps  # the map has its address
    return run


def packed(
    shape: Shape, address: Any, wide: int, line: int, to: Shape, block: int = 0
):
    """What packs the weights as `packed_weights` says, and where they go to.

    to: the same convolution with groups put together; block: lines of a group, if more than its filters.
    """
    block = block or shape.filters // shape.groups
    array = ct.to_device(np.zeros((shape.groups * block, line), "uint16"))
    function = kernel("gather.cu", "packed_weights")
    together = shape.groups // to.groups
    given = address, array, shape.struct(), wide, line, block, together
    grid = _grid("bf16", ct.cdiv(shape.filters * shape.product[2], 256))

    def run() -> None:
        function(*given, grid=grid, block=256)

    return run, array


def gather(shape: Shape, images, weights, results) -> Callable[[], None]:
    """Windows word by word, for mma; one thread per result for groups of few filters, and what is not aligned."""
    x, w, y = _taken("gather", shape, images, weights, results, "uint16", True)
    filters, _, depth = shape.product
    reach = [
        (n - 1) * d for n, d in zip(shape.window, shape.dilation, strict=True)
    ]
    furthest = (reach[0] * shape.width + reach[1] + 1) * shape.channels
    if filters < 4 or int(y.address) % 16 or furthest > MOST:
        return _any(shape, x, w, y)
    bn = 32 if filters <= 32 else 64
    line, columns = ct.cdiv(depth, 32) * 32, ct.cdiv(filters, bn)
    wide = shape.channels // shape.groups
    pack, to = packed(shape, w.address, wide, line, shape, columns * bn)
    rows, bits = table_last(shape, 32)
    rows = ct.to_device(rows)
    function = kernel("gather.cu", f"gather<{bn},{str(bits).lower()}>")
    pixels = shape.product[1]
    grid = _grid("gather", ct.cdiv(pixels, 128) * columns, shape.groups)
    given = shape.struct(), x.address, to, rows, y.address, line

    def run() -> None:
        pack()
        function(*given, grid=grid, block=256)

    run.operands = x, w, y
    return run


def _any(shape: Shape, x: Any, w: Any, y: Any) -> Callable[[], None]:
    m, n, _ = shape.product
    function = kernel("any_bf16.cu", "any_bf16")
    grid = _grid("bf16", ct.cdiv(m * n * shape.groups, 256))
    given = shape.struct(), x.address, w.address, y.address

    def run() -> None:
        function(*given, grid=grid, block=256)

    run.operands = x, w, y
    return run
