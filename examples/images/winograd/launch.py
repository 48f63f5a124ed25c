"""Launchers of this chapter: convolutions with windows of 3 x 3 and strides of
1 by Winograd's minimal filtering, in fp32, NCHW.

    run = winograd(shape, images, weights, results)        # tiles as they suit
    run = winograd(shape, images, weights, results, m=2)   # F(2 x 2, 3 x 3)
    run()                                                  # returns at once

Three launches: words of the image and weights are transformed, then there is
one product for each place of a tile, then products become results. The weights
are transformed in each run, unless `fixed` says that they stay what they are.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct
from cudatut.book.images.shapes import Shape
from cudatut.book.images.winograd.reference import refuses, tiles
from cudatut.book.published.sgemm import sgemm

FOLDER = "images/winograd"
THREADS = 128
ROOM = 2 << 30  # bytes of transformed words and of products, at a time
WAYS = (2, 4)  # m of F(m x m, 3 x 3)
LEAST = 16  # channels, and filters, of a group that suits
# Tiles of the product: those of the part on products but the deepest and the
# lowest, and the first one turned, or with a stage more.
_FIRST, *_OTHERS = (one for one in sgemm.CONFIGS if one.bk == 16 < one.bm)
CONFIGS = _FIRST, _FIRST.turned, replace(_FIRST, stages=4), *_OTHERS


@cache
def kernel(source: str, name: str) -> ct.Kernel:
    return ct.Kernel(f"{FOLDER}/{source}.cu", name)


# --8<-- [start:work]
class Work(NamedTuple):
    """What F(m x m, 3 x 3) has to do for so many images."""

    places: int  # of a tile: so many products
    tiles: int  # columns of each, rounded up to 4
    filters: int  # rows of each, of a group, rounded up to 4
    words: int  # bytes of transformed words
    weights: int
    products: int

    @property
    def held(self) -> int:
        """Bytes that are written and read again for each image."""
        return self.words + self.products


def work(shape: Shape, m: int, at_once: int | None = None) -> Work:
    """at_once: images, None for all."""
    places, (down, across) = (m + 2) ** 2, tiles(shape, m)
    images = shape.images if at_once is None else at_once
    columns = ct.cdiv(images * down * across, 4) * 4
    rows = ct.cdiv(shape.filters // shape.groups, 4) * 4
    return Work(
        places,
        columns,
        rows,
        4 * places * shape.channels * columns,
        4 * places * shape.channels * rows,
        4 * places * shape.filters * columns,
    )


def fitting(shape: Shape, m: int, room: int = ROOM) -> int:
    """Images at once: as many as have room, one at least."""
    held = work(shape, m, 1).held
    return max(1, min(shape.images, room // held))


# --8<-- [end:work]


# --8<-- [start:cost]
# Bytes a microsecond of a transform, and microseconds of a launch.
RATE, LAUNCH = 3.4e6, 2.5
CLOCK = 1900.0  # cycles a microsecond


def product_of(shape: Shape, m: int, at_once: int, sms: int):
    """The instance of least cost, and its cycles."""
    _, columns, _, *_ = some = work(shape, m, at_once)
    filters, depth = (
        shape.filters // shape.groups,
        shape.channels // shape.groups,
    )

    def cycles(config: sgemm.Config) -> float:
        count = ct.cdiv(filters, config.bm) * ct.cdiv(columns, config.bn)
        depths = ct.cdiv(depth, config.bk) * config.bk
        blocks = count * some.places * shape.groups
        return sgemm.span(config, blocks, depths, sms, 4, sgemm.COSTS.crowd)

    best = min(CONFIGS, key=cycles)
    return best, cycles(best)


def cost(shape: Shape, m: int, at_once: int | None = None, sms: int = 132):
    """Microseconds that all four steps are expected to take."""
    at_once = at_once or fitting(shape, m)
    needed = work(shape, m)
    high, wide = shape.out
    given = 4 * shape.images * shape.channels * shape.height * shape.width
    made = 4 * shape.images * shape.filters * high * wide
    weights = 4 * shape.filters * shape.channels // shape.groups * 9
    moved = given + needed.held + made + weights + needed.weights
    rounds = ct.cdiv(shape.images, at_once)
    _, cycles = product_of(shape, m, at_once, sms)
    read = (needed.held + needed.weights) / (1.25 * RATE)
    product = max(rounds * cycles / CLOCK, read)
    return moved / RATE + product + (1 + 3 * rounds) * LAUNCH


def chosen(shape: Shape, sms: int = 132) -> int:
    """m of the way that costs less."""
    return min(WAYS, key=lambda m: cost(shape, m, None, sms))


def suits(shape: Shape, sms: int = 132) -> bool:
    """Whether `winograd` takes the convolution, and is expected to be faster
    than the same number of operations as one product would be. Groups of few
    channels or filters leave most of a product's tile empty."""
    if refuses(shape):
        return False
    rows, columns, depth = shape.product
    if min(rows, depth // 9) < LEAST:
        return False
    config, busy = CONFIGS[0], 0.70
    blocks = ct.cdiv(rows, config.bm) * ct.cdiv(columns, config.bn)
    depth = ct.cdiv(depth, config.bk) * config.bk
    direct = sgemm.span(config, blocks * shape.groups, depth, sms, 1)
    other = direct * 0.94 / busy / CLOCK + LAUNCH
    return cost(shape, chosen(shape, sms), None, sms) < other


# --8<-- [end:cost]


def _taken(launcher: str, shape: Shape, images, weights, results) -> tuple:
    shape.check(launcher)
    if why := refuses(shape):
        raise ValueError(
            f"{launcher}: {why}: `implicit_gemm.launch.offsets` takes it"
        )
    take = ct.operands(launcher)
    return (
        take.read(
            "images",
            images,
            "float32",
            (shape.images, shape.channels, shape.height, shape.width),
        ),
        take.read(
            "weights",
            weights,
            "float32",
            (shape.filters, shape.channels // shape.groups, 3, 3),
        ),
        take.write(
            "results",
            results,
            "float32",
            (shape.images, shape.filters, *shape.out),
        ),
    )


def _launch(function, *given, **by) -> Callable[[], None]:
    """A launch, to be made when it is called."""

    def launch() -> None:
        function(*given, **by)

    return launch


def stored(shape: Shape, m: int, address: int) -> int:
    """Words of a store of results: 1, 2 or 4."""
    if shape.dilation[1] > 1:
        return 1
    fit = [1, 2, 4] if m == 4 else [1, 2]
    return max(n for n in fit if not (shape.out[1] % n or address % (4 * n)))


class Buffers(NamedTuple):
    """What lies between the steps."""

    u: Any  # transformed weights
    v: Any  # transformed words
    products: Any


# --8<-- [start:inputs]
def inputs(
    shape: Shape,
    m: int,
    images: int,
    weights: int,
    to: Buffers,
    words: bool = True,
    of_weights: bool = True,
    stream: Any = None,
) -> Callable[[], None]:
    """Transforms of words and of weights, or one of them. images, weights:
    addresses."""
    needed = work(shape, m)
    columns = ct.cdiv(needed.tiles, THREADS)
    high = min(shape.channels, 1 << 15) if words else 0
    blocks = ct.cdiv(needed.filters, 32) * ct.cdiv(shape.channels, 4)
    low = min(ct.cdiv(blocks, columns), (1 << 15) - 1) if of_weights else 0
    return _launch(
        kernel("transforms", f"winograd_inputs<{m}>"),
        shape.struct(),
        *tiles(shape, m),
        needed.tiles,
        needed.filters,
        high,
        np.uint64(images),
        to.v,
        np.uint64(weights),
        to.u,
        grid=(columns, high + low),
        block=THREADS,
        stream=stream,
    )


# --8<-- [end:inputs]


# --8<-- [start:multiply]
def multiply(
    shape: Shape,
    m: int,
    config: sgemm.Config,
    stays: bool,
    at: Buffers,
    stream: Any = None,
) -> Callable[[], None]:
    """All products, by blocks that stay or by one for each tile."""
    needed = work(shape, m)
    rows = shape.filters // shape.groups
    depth = shape.channels // shape.groups
    batch = needed.places * shape.groups
    each = ct.cdiv(rows, config.bm) * ct.cdiv(needed.tiles, config.bn)
    numbers = config.bm, config.bn, config.bk, config.tm, config.tn
    numbers += config.stages, config.blocks
    kind = "stay" if stays else "products"
    name = f"winograd_{kind}<{','.join(map(str, numbers))}>"
    given = [needed.filters, needed.tiles, depth, rows]
    grid: Any = each, batch
    if stays:
        given.append(each * batch)
        grid = min(each * batch, ct.device().sm_count * config.blocks)
    return _launch(
        kernel("products", name),
        *given,
        *at,
        grid=grid,
        block=config.threads,
        shared=config.shared(True, False),
        stream=stream,
    )


# --8<-- [end:multiply]


def results_of(
    shape: Shape, m: int, at: Buffers, results: int, stream: Any = None
) -> Callable[[], None]:
    """The last step; results: an address."""
    needed = work(shape, m)
    name = f"winograd_results<{m},{stored(shape, m, results)}>"
    return _launch(
        kernel("transforms", name),
        shape.struct(),
        *tiles(shape, m),
        needed.tiles,
        at.products,
        np.uint64(results),
        grid=(ct.cdiv(needed.tiles, THREADS), min(shape.filters, 65535)),
        block=THREADS,
        stream=stream,
    )


# --8<-- [start:launcher]
def winograd(
    shape: Shape,
    images: Any,
    weights: Any,
    results: Any,
    m: int | None = None,
    at_once: int | None = None,
    config: sgemm.Config | None = None,
    stays: bool | None = None,
    fixed: bool = False,
    stream: Any = None,
) -> Callable[[], None]:
    """The convolution; `.m`, `.at_once`, `.config`, `.stays`, `.steps` say how.

    m: 2 or 4, None for what `chosen` says; at_once: images whose transformed
    words are in memory at a time, None: as many as have ROOM; config, stays: of
    the products; fixed: weights are transformed here, not in the callable.
    Memory is allocated here. Raises ValueError, TypeError.
    """
    x, w, y = _taken("winograd", shape, images, weights, results)
    sms = ct.device().sm_count
    m = m or chosen(shape, sms)
    if m not in WAYS:
        raise ValueError(f"winograd: m = {m}: 2 or 4")
    if at_once is not None and at_once < 1:
        raise ValueError(f"winograd: {at_once} images at once")
    at_once = min(at_once or fitting(shape, m), shape.images)
    needed = work(shape, m, at_once)
    if needed.tiles > sgemm.LARGEST:
        raise ValueError(f"winograd: {needed.tiles} tiles at once")
    if needed.places * shape.groups > 65535:
        raise ValueError(f"winograd: {shape.groups} groups are too many")
    config = config or product_of(shape, m, at_once, sms)[0]
    whole = shape.channels // shape.groups % config.bk == 0
    if stays and not whole:
        raise ValueError(f"winograd: channels are no multiple of {config.bk}")
    stays = whole if stays is None else stays
    held = Buffers(
        *(
            ct.empty(count // 4, "float32")
            for count in (needed.weights, needed.words, needed.products)
        )
    )
    of_image = 4 * shape.channels * shape.height * shape.width
    of_results = 4 * shape.filters * shape.out[0] * shape.out[1]
    steps = []
    for first in range(0, shape.images, at_once):
        some = shape._replace(images=min(at_once, shape.images - first))
        start = int(x.address) + first * of_image, int(w.address)
        to = int(y.address) + first * of_results
        with_weights = first == 0 and not fixed
        steps += [
            inputs(some, m, *start, held, True, with_weights, stream),
            multiply(some, m, config, stays, held, stream),
            results_of(some, m, held, to, stream),
        ]
    given = int(x.address), int(w.address), held
    alone = inputs(shape, m, *given, False, True, stream)
    if fixed:
        alone()

    def run() -> None:
        for step in steps:
            step()

    run.operands, run.memory, run.steps = (x, w, y), held, steps
    run.m, run.at_once, run.config, run.stays = m, at_once, config, stays
    run.weights = alone
    return run


# --8<-- [end:launcher]


def parts(run: Callable) -> dict[str, Callable[[], None]]:
    """The three steps of a run, to be timed, and the transform of weights
    alone."""

    def all_of(which: int) -> Callable[[], None]:
        def some() -> None:
            for step in run.steps[which::3]:
                step()

        return some

    names = "inputs", "products", "results"
    found = {name: all_of(i) for i, name in enumerate(names)}
    return found | {"weights": run.weights}
